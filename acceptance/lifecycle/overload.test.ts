import assert from 'node:assert/strict'
import { connect } from 'node:net'
import { after, before, describe, test } from 'node:test'
import { listContentFiles } from '../support/content-files.ts'
import { sendTo } from '../support/http.ts'
import { assertProblem } from '../support/problems.ts'
import { type Service, startService } from '../support/start-service.ts'
import { listKept, makeCaller, newNoise, toId } from '../support/submitting.ts'
import { waitUntil } from '../support/wait-until.ts'

const settings = { ASSAY_DATABASE_URL: '', ASSAY_NSFW_PROFILE: 'off' }
const readReadiness = async ({ url }: Service) =>
  (await (await fetch(`${url}/readyz`)).json()) as { status: string; reasons: string[] }

describe('a service whose disk is full', () => {
  let service: Service
  before(async () => {
    service = await startService({
      ...settings,
      ASSAY_DISK_RESERVE_MB: '1000000000',
      ASSAY_CONTENT_MEMORY_MB: '1',
    })
  })
  after(() => service.stop())

  test('refuses content that it would have to store, charges nothing and leaves nothing behind', async () => {
    const caller = makeCaller(service.url, service.apiKey)
    for (const bytes of [100, 100_000, 3_000_000]) {
      const answer = await caller.sendFile('malware', 'submit', newNoise(bytes))
      await assertProblem(answer, { status: 503, kind: 'storage-full' })
      assert.match(String(answer.headers['retry-after']), /^[1-9]\d*$/)
    }
    const large = await caller.sendFile('malware', 'scan', newNoise(3_000_000))
    await assertProblem(large, { status: 503, kind: 'storage-full' })
    assert.equal(await caller.readSpent(), 0)
    assert.deepEqual(listKept(service.dataDir), [])
    assert.deepEqual(listContentFiles(service), [])
  })

  test('scans content that fits into memory, and reports the full disk', async () => {
    const answer = await makeCaller(service.url, service.apiKey).sendFile('malware', 'scan', newNoise(1000))
    assert.equal(answer.status, 201, answer.text)
    const { status, reasons } = await readReadiness(service)
    assert.equal(status, 'degraded')
    assert.match(reasons.join(), /disk is almost full/)
  })
})

describe('a service with limits', () => {
  let service: Service
  before(async () => {
    service = await startService({ ...settings, ASSAY_JOB_CONTENT_MB: '1', ASSAY_MAX_CONNECTIONS: '4' })
  })
  after(() => service.stop())

  test('accepts job content up to its limit, and again when there is space', async () => {
    const caller = makeCaller(service.url, service.apiKey)
    const over = await caller.sendFile('malware', 'submit', newNoise(2_000_000))
    await assertProblem(over, { status: 503, kind: 'storage-full' })
    assert.deepEqual(listKept(service.dataDir), [])
    for (let n = 0; n < 4; n++) {
      const id = toId(await caller.sendFile('malware', 'submit', newNoise(700_000)))
      assert.equal((await caller.complete('malware', id)).status, 'clean')
      await waitUntil('its content to be gone', () => listKept(service.dataDir).length === 0)
    }
    assert.equal(await caller.readSpent(), 4)
  })

  test('refuses connections beyond its limit, still answers /readyz, and keeps the connections it has', async () => {
    const { hostname, port } = new URL(service.url)
    // Each request opens its own connection.
    const headers = { 'x-api-key': service.apiKey, connection: 'close' }
    const ping = () => sendTo(service.url, { method: 'GET', path: '/v1/ping', headers })
    const idle = Array.from({ length: 4 }, () => connect(Number(port), hostname).on('error', () => {}))
    await waitUntil('the connections to be refused', async () => (await ping()).status === 503)
    const refused = await ping()
    await assertProblem(refused, { status: 503, kind: 'overloaded' })
    assert.equal(refused.headers.connection, 'close')
    assert.equal((await readReadiness(service)).status, 'ready')
    for (const socket of idle) socket.destroy()
    await waitUntil('a place to be free', async () => (await ping()).status === 200)
  })
})
