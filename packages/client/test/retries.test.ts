import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { test } from 'node:test'
import { type ClientOptions, newClient, RateLimited } from '@assay/client'
import { findDeadUrl, openHostile } from './hostile.ts'

const result = {
  id: '0199a3c5-52f1-7c39-8f0e-6f1d5d0f6a3b',
  scan_type: 'malware',
  status: 'clean',
  content_length: 1,
  content_type: 'text/plain',
  created_at: '2026-11-15T12:17:54.935Z',
}
const pending = { ...result, status: 'pending' }
const traceId = '00-861b31e3c9e762f383db108216a6e563-ea31d25c1dc6b6e9-01'
const later = (status: number, seconds: string) => ({ status, json: { traceId }, headers: { 'retry-after': seconds } })
const open = (baseUrl: string, options: Partial<ClientOptions> = {}) =>
  newClient({ apiKey: 'key', baseUrl, ...options })

test('what can be read again is sent again, the same and under the same key, after every failure that passes', async (t) => {
  const dir = mkdtempSync(join(tmpdir(), 'assay-client-'))
  t.after(() => rmSync(dir, { recursive: true, force: true }))
  const path = join(dir, 'some.txt')
  const content = randomBytes(700_000)
  writeFileSync(path, content)
  const failures = ['reset' as const, later(429, '0'), later(503, '0')]
  for (const fetching of [{}, { fetch }]) {
    for (const input of [path, content, new Blob([content])]) {
      const hostile = await openHostile(t, ({ count }) => failures[count] ?? { json: result })
      const scan = await open(hostile.url, fetching).malware.scanFile(input)
      assert.equal(scan.status, 'clean')
      assert.equal(scan.meta.attempts, 4)
      const keys = new Set(hostile.requests.map(({ headers }) => headers['idempotency-key']))
      assert.equal(keys.size, 1)
      for (const { body } of hostile.requests) assert(body.includes(content))
    }
  }
})

test('a stream is not sent again after its first byte was', async (t) => {
  for (const fetching of [{}, { fetch }]) {
    for (const failure of ['reset' as const, later(503, '0')]) {
      const hostile = await openHostile(t, () => failure)
      const call = open(hostile.url, fetching).malware.scanFile(Readable.from([Buffer.alloc(100_000)]))
      await assert.rejects(call, { name: failure === 'reset' ? 'ConnectionFailed' : 'Overloaded' })
      assert.equal(hostile.requests.length, 1)
    }
  }
})

test('a stream of which nothing was read is still sent again', async (t) => {
  // The server refuses before it invites the body, twice.
  const hostile = await openHostile(t, ({ count }) => (count < 2 ? later(429, '0') : { json: result }), {
    atOnce: true,
  })
  const scan = await open(hostile.url).malware.scanFile(Readable.from([Buffer.alloc(100_000)]))
  assert.equal(scan.meta.attempts, 3)
})

test('Retry-After is kept to', async (t) => {
  const hostile = await openHostile(t, ({ count }) => (count === 0 ? later(429, '1') : { json: result }))
  const startedAt = performance.now()
  await open(hostile.url).malware.getResult(result.id)
  assert(performance.now() - startedAt >= 990)
})

test('a Retry-After that is too long is left to the caller, at once', async (t) => {
  const hostile = await openHostile(t, () => later(429, '61'))
  await assert.rejects(open(hostile.url).ping(), (error) => error instanceof RateLimited && error.retryAfter === 61)
  const within = open((await openHostile(t, () => later(429, '30'))).url, { timeoutMs: 20_000 })
  await assert.rejects(within.ping(), { name: 'RateLimited', retryAfter: 30 })
  assert.equal(hostile.requests.length, 1)
})

test('retries end, and none means none', async (t) => {
  const hostile = await openHostile(t, () => later(503, '0'))
  await assert.rejects(open(hostile.url).ping(), { name: 'Overloaded' })
  assert.equal(hostile.requests.length, 4)
  await assert.rejects(open(hostile.url, { retries: 0 }).ping(), { name: 'Overloaded' })
  assert.equal(hostile.requests.length, 5)
})

test('what would end the same way is not sent again', async (t) => {
  for (const status of [400, 401, 403, 404, 415, 422, 500]) {
    const hostile = await openHostile(t, () => ({ status, json: { traceId } }))
    await assert.rejects(open(hostile.url).malware.scanFile(Buffer.from('x')))
    assert.equal(hostile.requests.length, 1, String(status))
  }
})

test('a service that starts late is found', async (t) => {
  const url = await findDeadUrl()
  const { createServer } = await import('node:http')
  const pinging = open(url).ping()
  const server = createServer((_request, response) => void response.end())
  server.listen(Number(new URL(url).port), '127.0.0.1')
  t.after(() => {
    server.close()
    server.closeAllConnections()
  })
  assert.equal((await pinging).meta.status, 200)
})

test('waiting for a result falls back to asking again, where the service does not know how to wait', async (t) => {
  const ignorant = await openHostile(t, ({ count }) => ({ json: count < 3 ? pending : result }))
  let polls = 0
  const settled = await open(ignorant.url).malware.waitFor(result.id, {
    onPoll: ({ status }) => {
      assert.equal(status, 'pending')
      polls++
    },
  })
  assert.equal(settled.status, 'clean')
  assert.equal(polls, 3)

  const strict = await openHostile(t, ({ path }) =>
    path.includes('?')
      ? { status: 422, json: { traceId, errors: { wait: ['wait is not known.'] } } }
      : { json: result },
  )
  assert.equal((await open(strict.url).malware.waitFor(result.id)).status, 'clean')
})

test('without a key nothing is sent again but what was refused', async (t) => {
  for (const failure of ['reset' as const, { status: 502 }, { status: 504 }]) {
    const hostile = await openHostile(t, () => failure)
    await assert.rejects(open(hostile.url).malware.scanFile(Buffer.from('x'), { idempotencyKey: null }))
    assert.equal(hostile.requests.length, 1)
    assert.equal(hostile.requests[0]?.headers['idempotency-key'], undefined)
  }
  const refusals = [later(429, '0'), later(503, '0')]
  const hostile = await openHostile(t, ({ count }) => refusals[count] ?? { json: result })
  const scan = await open(hostile.url).malware.scanFile(Buffer.from('x'), { idempotencyKey: null })
  assert.equal(scan.meta.attempts, 3)
})
