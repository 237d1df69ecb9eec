import assert from 'node:assert/strict'
import { Readable } from 'node:stream'
import { test } from 'node:test'
import { newClient } from '@assay/client'
import { waitUntil } from '../../../acceptance/support/wait-until.ts'
import { newResult, openFakeServer, scanId } from './fake-server.ts'

const ways = { own: {}, fetch: { fetch } }

for (const [way, options] of Object.entries(ways)) {
  const open = (baseUrl: string) => newClient({ apiKey: 'key', baseUrl, ...options })

  test(`aborting an upload closes the connection and the stream (${way})`, async (t) => {
    const fake = await openFakeServer(t, () => 'silence')
    const controller = new AbortController()
    const reason = new Error('the user left')
    const stalled = new Readable({ read() {} })
    stalled.push(Buffer.alloc(100_000))
    const call = open(fake.url).malware.scanFile(stalled, { signal: controller.signal })
    call.catch(() => {})
    await waitUntil('the first bytes', () => fake.received() > 50_000)
    controller.abort(reason)
    await assert.rejects(call, (error: Error) => error.name === 'Aborted' && error.cause === reason)
    await waitUntil('the connection to be closed', async () => (await fake.countConnections()) === 0)
    await waitUntil('the stream to be closed', () => stalled.destroyed)
  })

  test(`a call to a silent server ends after timeoutMs (${way})`, async (t) => {
    const fake = await openFakeServer(t, () => 'silence')
    const { ping, malware } = open(fake.url)
    for (const call of [ping({ timeoutMs: 100 }), malware.scanFile(Buffer.from('x'), { timeoutMs: 100 })]) {
      await assert.rejects(call, { name: 'TimedOut', message: /^127\.0\.0\.1:\d+ did not answer within 0\.1 s\.$/ })
    }
    await assert.rejects(ping({ signal: AbortSignal.timeout(50) }), { name: 'TimedOut' })
    if (way === 'own') {
      await waitUntil('the connections to be closed', async () => (await fake.countConnections()) === 0)
    }
  })
}

test('a custom fetch that ignores its signal does not delay the timeout', async () => {
  const { ping, malware } = newClient({
    apiKey: 'key',
    baseUrl: 'http://127.0.0.1',
    fetch: () => new Promise(() => {}),
  })
  await assert.rejects(ping({ timeoutMs: 20 }), { name: 'TimedOut' })
  const scan = malware.scanFile(Buffer.from('x'), { signal: AbortSignal.timeout(20) })
  await assert.rejects(scan, { name: 'TimedOut', message: /^The timeout of the signal expired\./ })
})

test('timeoutMs bounds a call with all its retries', async (t) => {
  t.mock.timers.enable({ apis: ['setTimeout', 'Date'], now: 0 })
  let attempts = 0
  const failing = async () => {
    attempts++
    throw new TypeError('fetch failed')
  }
  const options = { baseUrl: 'http://127.0.0.1', fetch: failing, retries: 100, timeoutMs: 700 }
  let hasEnded = false
  const ended = newClient({ apiKey: 'key', ...options })
    .ping()
    .catch((error: Error) => error)
    .finally(() => {
      hasEnded = true
    })
  while (!hasEnded) {
    t.mock.timers.tick(10)
    await new Promise(setImmediate)
  }
  // The pauses are random: the time ends before a pause that does not fit, or during the last attempt.
  assert.match(((await ended) as Error).name, /^(?:ConnectionFailed|TimedOut)$/)
  assert(attempts > 1 && Date.now() <= 700, `${attempts} attempts until ${Date.now()} ms`)
})

test('a signal ends the pause before a retry, and an aborted call sends nothing', async (t) => {
  const fake = await openFakeServer(t, () => ({ status: 503, headers: { 'retry-after': '50' } }))
  const { ping } = newClient({ apiKey: 'key', baseUrl: fake.url })
  const controller = new AbortController()
  const call = ping({ signal: controller.signal })
  call.catch(() => {})
  await waitUntil('the request', () => fake.requests.length === 1)
  controller.abort()
  await assert.rejects(call, { name: 'Aborted' })
  await assert.rejects(ping({ signal: controller.signal }), { name: 'Aborted' })
  assert.equal(fake.requests.length, 1)
})

test('waitFor ends with its timeout or its signal, and says that the scan continues', async (t) => {
  const fake = await openFakeServer(t, () => ({ json: newResult('pending') }))
  const { malware } = newClient({ apiKey: 'key', baseUrl: fake.url })
  await assert.rejects(malware.waitFor(scanId, { timeoutMs: 300 }), {
    name: 'TimedOut',
    message: `The result of ${scanId} was not available within 0.3 s. The scan continues; fetch it later.`,
  })
  const controller = new AbortController()
  await assert.rejects(malware.waitFor(scanId, { signal: controller.signal, onPoll: () => controller.abort() }), {
    name: 'Aborted',
  })
})

test('waitFor ends with its own timeout while the service holds its response', async (t) => {
  const fake = await openFakeServer(t, () => new Promise(() => {}))
  const { malware } = newClient({ apiKey: 'key', baseUrl: fake.url })
  await assert.rejects(malware.waitFor(scanId, { timeoutMs: 300 }), { name: 'TimedOut', message: /The scan continues/ })
})

test('an error in onProgress rejects the call', async (t) => {
  const fake = await openFakeServer(t, () => ({ json: newResult() }))
  const { malware } = newClient({ apiKey: 'key', baseUrl: fake.url })
  const onProgress = () => {
    throw new Error('no such bar')
  }
  await assert.rejects(malware.scanFile(Buffer.alloc(2_000_000), { onProgress }), { message: 'no such bar' })
})
