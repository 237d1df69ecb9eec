import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { test } from 'node:test'
import { type ClientOptions, newClient, RateLimited } from '@assay/client'
import { findUnusedUrl, listen, newResult, openFakeServer } from './fake-server.ts'

const result = newResult()
const traceId = '00-861b31e3c9e762f383db108216a6e563-ea31d25c1dc6b6e9-01'
const later = (status: number, seconds: string) => ({ status, json: { traceId }, headers: { 'retry-after': seconds } })
const open = (baseUrl: string, options: Partial<ClientOptions> = {}) =>
  newClient({ apiKey: 'key', baseUrl, ...options })

test('content that can be read again is retried with the same bytes and key after every transient failure', async (t) => {
  const dir = mkdtempSync(join(tmpdir(), 'assay-client-'))
  t.after(() => rmSync(dir, { recursive: true, force: true }))
  const path = join(dir, 'some.txt')
  const content = randomBytes(700_000)
  writeFileSync(path, content)
  const failures = ['reset' as const, later(429, '0'), later(503, '0')]
  for (const transport of [{}, { fetch }]) {
    for (const input of [path, content, new Blob([content])]) {
      const fake = await openFakeServer(t, ({ count }) => failures[count] ?? { json: result })
      const scan = await open(fake.url, transport).malware.scanFile(input)
      assert.equal(scan.status, 'clean')
      assert.equal(scan.meta.attempts, 4)
      const keys = new Set(fake.requests.map(({ headers }) => headers['idempotency-key']))
      assert.equal(keys.size, 1)
      for (const { body } of fake.requests) assert(body.includes(content))
    }
  }
})

test('a stream is not retried after its first byte was read', async (t) => {
  for (const transport of [{}, { fetch }]) {
    for (const failure of ['reset' as const, later(503, '0')]) {
      const fake = await openFakeServer(t, () => failure)
      const call = open(fake.url, transport).malware.scanFile(Readable.from([Buffer.alloc(100_000)]))
      await assert.rejects(call, { name: failure === 'reset' ? 'ConnectionFailed' : 'Overloaded' })
      assert.equal(fake.requests.length, 1)
    }
  }
})

test('a stream of which nothing was read is retried', async (t) => {
  // The server rejects the first two requests before it accepts the body.
  const fake = await openFakeServer(t, ({ count }) => (count < 2 ? later(429, '0') : { json: result }), {
    isEarly: true,
  })
  const scan = await open(fake.url).malware.scanFile(Readable.from([Buffer.alloc(100_000)]))
  assert.equal(scan.meta.attempts, 3)
})

test('a retry waits for the seconds in Retry-After', async (t) => {
  t.mock.timers.enable({ apis: ['setTimeout', 'Date'] })
  let attempts = 0
  const limitedOnce = async () =>
    ++attempts === 1
      ? new Response(JSON.stringify({ traceId }), { status: 429, headers: { 'Retry-After': '30' } })
      : Response.json(result)
  const scan = open('http://127.0.0.1', { fetch: limitedOnce }).malware.getResult(result.id)
  const settle = async () => {
    for (let turns = 0; turns < 10; turns++) await new Promise(setImmediate)
  }
  await settle()
  t.mock.timers.tick(29_999)
  await settle()
  assert.equal(attempts, 1)
  t.mock.timers.tick(1)
  assert.equal((await scan).meta.attempts, 2)
})

test('a Retry-After that is too long is an error without a retry', async (t) => {
  const fake = await openFakeServer(t, () => later(429, '61'))
  await assert.rejects(open(fake.url).ping(), (error) => error instanceof RateLimited && error.retryAfter === 61)
  const within = open((await openFakeServer(t, () => later(429, '30'))).url, { timeoutMs: 20_000 })
  await assert.rejects(within.ping(), { name: 'RateLimited', retryAfter: 30 })
  assert.equal(fake.requests.length, 1)
})

test('the number of retries is limited, and may be 0', async (t) => {
  const fake = await openFakeServer(t, () => later(503, '0'))
  await assert.rejects(open(fake.url).ping(), { name: 'Overloaded' })
  assert.equal(fake.requests.length, 4)
  await assert.rejects(open(fake.url, { retries: 0 }).ping(), { name: 'Overloaded' })
  assert.equal(fake.requests.length, 5)
})

test('permanent failures are not retried', async (t) => {
  for (const status of [400, 401, 403, 404, 415, 422, 500]) {
    const fake = await openFakeServer(t, () => ({ status, json: { traceId } }))
    await assert.rejects(open(fake.url).malware.scanFile(Buffer.from('x')))
    assert.equal(fake.requests.length, 1, String(status))
  }
})

test('a service that starts late is reached by a retry', async (t) => {
  const url = await findUnusedUrl()
  const pinging = open(url).ping()
  const server = createServer((_request, response) => void response.end())
  await listen(t, server, { port: Number(new URL(url).port) })
  assert.equal((await pinging).meta.status, 200)
})

test('waitFor polls a service that ignores or rejects the wait parameter', async (t) => {
  const ignoring = await openFakeServer(t, ({ count }) => ({ json: count < 3 ? newResult('pending') : result }))
  let polls = 0
  const completed = await open(ignoring.url).malware.waitFor(result.id, {
    onPoll: ({ status }) => {
      assert.equal(status, 'pending')
      polls++
    },
  })
  assert.equal(completed.status, 'clean')
  assert.equal(polls, 3)

  const rejecting = await openFakeServer(t, ({ path }) =>
    path.includes('?')
      ? { status: 422, json: { traceId, errors: { wait: ['wait is not known.'] } } }
      : { json: result },
  )
  assert.equal((await open(rejecting.url).malware.waitFor(result.id)).status, 'clean')
})

test('without an idempotency key only rejected requests are retried', async (t) => {
  for (const failure of ['reset' as const, { status: 502 }, { status: 504 }]) {
    const fake = await openFakeServer(t, () => failure)
    await assert.rejects(open(fake.url).malware.scanFile(Buffer.from('x'), { idempotencyKey: null }))
    assert.equal(fake.requests.length, 1)
    assert.equal(fake.requests[0]?.headers['idempotency-key'], undefined)
  }
  const rejections = [later(429, '0'), later(503, '0')]
  const fake = await openFakeServer(t, ({ count }) => rejections[count] ?? { json: result })
  const scan = await open(fake.url).malware.scanFile(Buffer.from('x'), { idempotencyKey: null })
  assert.equal(scan.meta.attempts, 3)
})
