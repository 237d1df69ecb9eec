import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { createServer } from 'node:https'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { waitUntil } from '../../../../acceptance/support/wait-until.ts'
import { makeAddressPolicy } from '../../src/domain/scans/web-address.ts'
import { makeGuardedAgent } from '../../src/outbound/guarded-agent.ts'
import { makeWebhookSender } from '../../src/outbound/senders.ts'
import { version } from '../../src/runtime/process.ts'
import { end, listen, newLoopbackSender, openRawReceiver, openReceiver, writeWithoutEnd } from './receivers.ts'

const body = Buffer.from('{"id":"ä€😀"}')
const openssl = 'openssl'
const sender = newLoopbackSender()
const send = (url: string, totalMs = 3000) => sender.send({ url, headers: { 'webhook-id': 'one' }, body, totalMs })

type Act = Parameters<typeof openRawReceiver>[0]

/** What comes of sending to a receiver that behaves like this, which must have lost its connection afterwards. */
async function sendTo(act: Act, totalMs?: number) {
  const receiver = await openRawReceiver(act)
  try {
    const outcome = await send(receiver.url, totalMs)
    await waitUntil('the connection is closed', () => receiver.countOpen() === 0)
    assert.equal(receiver.countRequests(), 1)
    return { outcome }
  } finally {
    await receiver.close()
  }
}

describe('the webhook sender', () => {
  test('posts exactly the bytes it is given, as JSON, with our name', async () => {
    const receiver = await openReceiver(() => ({ status: 200, body: 'thanks' }))
    const outcome = await send(`${receiver.url}?token=1`)
    await receiver.close()
    assert.deepEqual(outcome, {
      status: 200,
      retryAfter: undefined,
      beginning: Buffer.from('thanks'),
      isPublic: false,
    })
    const [request] = receiver.received
    assert(request !== undefined)
    assert.deepEqual([request.method, request.path], ['POST', '/hook?token=1'])
    assert(request.body.equals(body))
    const { host: _, connection: __, ...headers } = request.headers
    assert.deepEqual(headers, {
      'content-type': 'application/json',
      'user-agent': `Assay/${version}`,
      'content-length': String(body.length),
      'webhook-id': 'one',
    })
  })

  test('takes an answer without a body', async () => {
    const receiver = await openReceiver(() => ({ status: 204 }))
    const outcome = await send(receiver.url)
    await receiver.close()
    assert.deepEqual(outcome, { status: 204, retryAfter: undefined, beginning: Buffer.alloc(0), isPublic: false })
  })

  test('hands on status, Retry-After and the beginning of a refusal', async () => {
    const headers = { 'retry-after': '120' }
    const receiver = await openReceiver(() => ({ status: 429, headers, body: 'x'.repeat(5000) }))
    const outcome = await send(receiver.url)
    await receiver.close()
    assert.deepEqual(outcome, { status: 429, retryAfter: '120', beginning: Buffer.alloc(1024, 'x'), isPublic: false })
  })

  test('follows no redirect, not even to the same address', async () => {
    for (const status of [301, 302, 303, 307, 308]) {
      const receiver = await openReceiver(({ path }) => ({ status, headers: { location: path } }))
      const outcome = await send(receiver.url)
      await receiver.close()
      assert.equal(outcome.status, status)
      assert.equal(receiver.received.length, 1)
    }
  })

  test('gives up on a receiver that says nothing, when the time is over', async () => {
    const { outcome } = await sendTo(() => {}, 300)
    assert.deepEqual(outcome, { status: null, reason: 'The receiver did not answer within 0.3 seconds.' })
  })

  test('reads 64 KiB of an answer without an end, and closes', async () => {
    let written = 0
    const { outcome } = await sendTo(async (socket) => {
      written = await writeWithoutEnd(socket, 'HTTP/1.1 200 OK\r\n\r\n', 'x'.repeat(16_384))
    })
    assert.deepEqual(outcome, {
      status: 200,
      retryAfter: undefined,
      beginning: Buffer.alloc(1024, 'x'),
      isPublic: false,
    })
    // What the receiver could write fills the buffers of both sides, and no more.
    assert(written < 30_000_000, `${written} bytes`)
  })

  test('gives up on headers without an end', async () => {
    const { outcome } = await sendTo(async (socket) => {
      await writeWithoutEnd(socket, 'HTTP/1.1 200 OK\r\n', `x: ${'y'.repeat(1000)}\r\n`)
    })
    assert.deepEqual(outcome, { status: null, reason: 'The headers of the response are too large.' })
  })

  test('gives up on informational answers without an end', async () => {
    const { outcome } = await sendTo(async (socket) => {
      await writeWithoutEnd(socket, '', 'HTTP/1.1 103 Early Hints\r\n\r\n')
    })
    assert.deepEqual(outcome, { status: null, reason: 'The host sent only interim responses.' })
  })

  test('tells when a receiver closes or resets before it answers', async () => {
    const reason = 'The host closed the connection before its response was complete.'
    for (const act of [
      (socket) => socket.end(),
      (socket) => socket.resetAndDestroy(),
      (socket) => socket.end('HTTP/1.1 200 OK\r\ncontent-le'),
    ] as Act[]) {
      assert.deepEqual((await sendTo(act)).outcome, { status: null, reason })
    }
  })

  test('counts a status that came, also when the answer breaks off after it', async () => {
    const head = 'HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nhalf'
    for (const act of [
      (socket) => socket.end(head),
      (socket) => socket.write(head, () => socket.resetAndDestroy()),
    ] as Act[]) {
      const { outcome } = await sendTo(act)
      assert.equal(outcome.status, 200)
    }
  })

  test('lets an answer that comes byte by byte have its time, and no more', async () => {
    const trickle =
      (text: string, head = ''): Act =>
      async (socket, signal) => {
        socket.write(head)
        for (const byte of text) {
          if (socket.destroyed || signal.aborted) return
          socket.write(byte)
          await new Promise((resolve) => setTimeout(resolve, 2))
        }
        socket.end()
      }
    const whole = await sendTo(trickle('HTTP/1.1 201 Created\r\ncontent-length: 4\r\n\r\nfine'))
    assert.deepEqual(whole.outcome, {
      status: 201,
      retryAfter: undefined,
      beginning: Buffer.from('fine'),
      isPublic: false,
    })
    const slowHead = await sendTo(trickle(`HTTP/1.1 200 OK\r\nx: ${'y'.repeat(5000)}`), 300)
    assert.deepEqual(slowHead.outcome, { status: null, reason: 'The receiver did not answer within 0.3 seconds.' })
    const slowBody = await sendTo(trickle('y'.repeat(5000), 'HTTP/1.1 200 OK\r\n\r\n'), 2000)
    assert(slowBody.outcome.status === 200)
    assert.match(slowBody.outcome.beginning.toString(), /^y+$/)
  })

  test('tells when the answer is no HTTP', async () => {
    const { outcome } = await sendTo((socket) => socket.write('220 mail.example.com ESMTP\r\n'))
    assert.deepEqual(outcome, { status: null, reason: 'The host did not send a valid HTTP response.' })
  })

  test('tells when nobody listens', async () => {
    const receiver = await openReceiver(() => 'never')
    await receiver.close()
    assert.deepEqual(await send(receiver.url), { status: null, reason: 'The host refused the connection.' })
  })

  test('sends nothing to a receiver whose certificate is not for it or that nobody vouches for', async () => {
    const dir = mkdtempSync(join(tmpdir(), 'assay-webhooks-'))
    const [key, cert] = [join(dir, 'key.pem'), join(dir, 'cert.pem')]
    const newKey = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-keyout', key]
    const args = ['req', '-x509', ...newKey, '-out', cert, '-days', '2', '-subj', '/CN=other.example.com']
    execFileSync(openssl, args, { stdio: 'ignore' })
    let requests = 0
    const server = createServer({ key: readFileSync(key), cert: readFileSync(cert) }, () => {
      requests += 1
    })
    rmSync(dir, { recursive: true })
    const outcome = await send(await listen(server, '127.0.0.1', 'https'))
    await end(server)
    assert.deepEqual(outcome, { status: null, reason: 'The certificate of the host could not be verified.' })
    assert.equal(requests, 0)
  })

  test('calls no address that is not public, whether it is written or a name leads there', async () => {
    const policy = makeAddressPolicy([])
    const strict = makeWebhookSender({ policy, agent: makeGuardedAgent({ policy }) })
    const receiver = await openReceiver(() => ({ status: 200 }))
    const port = new URL(receiver.url).port
    const cases: [host: string, reason: RegExp][] = [
      ['127.0.0.1', /^The address must not point to an address that is not public\.$/],
      ['0x7f.1', /^The address must not point to an address that is not public\.$/],
      ['localhost', /^The name of the host does not lead to a public address\.$/],
    ]
    for (const [host, reason] of cases) {
      const outcome = await strict.send({ url: `http://${host}:${port}/`, headers: {}, body, totalMs: 3000 })
      assert(outcome.status === null)
      assert.match(outcome.reason, reason)
    }
    await receiver.close()
    assert.equal(receiver.received.length, 0)
  })

  test('says so when it is our own fault, and does not throw', async () => {
    const policy = makeAddressPolicy([])
    const shortage = Object.assign(new Error('too many open files'), { code: 'EMFILE' })
    const agent = { exchange: () => Promise.reject(shortage) }
    const outcome = await makeWebhookSender({ policy, agent }).send({
      url: 'https://example.com/',
      headers: {},
      body,
      totalMs: 100,
    })
    assert.deepEqual(outcome, {
      status: null,
      reason: 'The request could not be sent because of an internal error.',
      fault: shortage,
    })
  })
})
