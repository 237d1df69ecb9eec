import assert from 'node:assert/strict'
import { Readable } from 'node:stream'
import { test } from 'node:test'
import { newClient } from '@assay/client'
import { waitUntil } from '../../../acceptance/support/wait-until.ts'
import { openHostile } from './hostile.ts'

const id = '0199a3c5-52f1-7c39-8f0e-6f1d5d0f6a3b'
const pending = { id, scan_type: 'malware', status: 'pending', content_length: 1, content_type: '', created_at: '' }
const ways = { own: {}, fetch: { fetch } }

for (const [way, options] of Object.entries(ways)) {
  const open = (baseUrl: string) => newClient({ apiKey: 'key', baseUrl, ...options })

  test(`an upload is aborted in its middle, and the connection closed (${way})`, async (t) => {
    const hostile = await openHostile(t, () => 'silence')
    const controller = new AbortController()
    const reason = new Error('the user left')
    // Gives a little, then nothing more, and never ends.
    const stalled = new Readable({ read() {} })
    stalled.push(Buffer.alloc(100_000))
    const call = open(hostile.url).malware.scanFile(stalled, { signal: controller.signal })
    call.catch(() => {})
    await waitUntil('the first bytes', () => hostile.received() > 50_000)
    controller.abort(reason)
    await assert.rejects(call, (error: Error) => error.name === 'Aborted' && error.cause === reason)
    await waitUntil('the connection to be closed', async () => (await hostile.countConnections()) === 0)
    await waitUntil('the stream to be closed', () => stalled.destroyed)
  })

  test(`a server that never answers is given up after timeoutMs (${way})`, async (t) => {
    const hostile = await openHostile(t, () => 'silence')
    const { ping, malware } = open(hostile.url)
    for (const call of [ping({ timeoutMs: 100 }), malware.scanFile(Buffer.from('x'), { timeoutMs: 100 })]) {
      await assert.rejects(call, { name: 'TimedOut', message: /^127\.0\.0\.1:\d+ did not answer within 0\.1 s\.$/ })
    }
    await assert.rejects(ping({ signal: AbortSignal.timeout(50) }), { name: 'TimedOut' })
    if (way === 'own') {
      await waitUntil('the connections to be closed', async () => (await hostile.countConnections()) === 0)
    }
  })
}

test('a fetch of the caller that never ends, and heeds no signal, holds up nobody', async () => {
  const { ping, malware } = newClient({
    apiKey: 'key',
    baseUrl: 'http://127.0.0.1',
    fetch: () => new Promise(() => {}),
  })
  await assert.rejects(ping({ timeoutMs: 20 }), { name: 'TimedOut' })
  const scan = malware.scanFile(Buffer.from('x'), { signal: AbortSignal.timeout(20) })
  await assert.rejects(scan, { name: 'TimedOut', message: /^The time that the signal gave is over\./ })
})

test('timeoutMs bounds a call with all its retries', async (t) => {
  const hostile = await openHostile(t, () => 'reset')
  const startedAt = performance.now()
  await assert.rejects(newClient({ apiKey: 'key', baseUrl: hostile.url, retries: 100, timeoutMs: 700 }).ping())
  assert(performance.now() - startedAt < 3000)
})

test('a signal ends the pause before a retry, and what was aborted before is never sent', async (t) => {
  const hostile = await openHostile(t, () => ({ status: 503, headers: { 'retry-after': '50' } }))
  const { ping } = newClient({ apiKey: 'key', baseUrl: hostile.url })
  const controller = new AbortController()
  const call = ping({ signal: controller.signal })
  call.catch(() => {})
  await waitUntil('the request', () => hostile.requests.length === 1)
  controller.abort()
  await assert.rejects(call, { name: 'Aborted' })
  await assert.rejects(ping({ signal: controller.signal }), { name: 'Aborted' })
  assert.equal(hostile.requests.length, 1)
})

test('waiting for a result ends with the signal, or with the time, and says that the scan goes on', async (t) => {
  const hostile = await openHostile(t, () => ({ json: pending }))
  const { malware } = newClient({ apiKey: 'key', baseUrl: hostile.url })
  await assert.rejects(malware.waitFor(id, { timeoutMs: 300 }), {
    name: 'TimedOut',
    message: `The result of ${id} was not there within 0.3 s. The scan goes on; fetch it later.`,
  })
  const controller = new AbortController()
  await assert.rejects(malware.waitFor(id, { signal: controller.signal, onPoll: () => controller.abort() }), {
    name: 'Aborted',
  })
})

test('a mistake in onProgress is the caller’s to see', async (t) => {
  const hostile = await openHostile(t, () => ({ json: { ...pending, status: 'clean' } }))
  const { malware } = newClient({ apiKey: 'key', baseUrl: hostile.url })
  const onProgress = () => {
    throw new Error('no such bar')
  }
  await assert.rejects(malware.scanFile(Buffer.alloc(2_000_000), { onProgress }), { message: 'no such bar' })
})
