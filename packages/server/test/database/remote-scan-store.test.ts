import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { after, before, beforeEach, describe, test } from 'node:test'
import { makeRemoteScanStore } from '../../src/database/remote-scan-store.ts'
import { maxRemoteScanAttempts, type NewRemoteScan } from '../../src/domain/ports/job-store.ts'
import type { FinalResult } from '../../src/domain/scans/scan.ts'
import { openTestDatabase } from '../support/test-database.ts'

const queue = 'malware here'
const leaseMs = 30_000
const result: FinalResult = {
  status: 'threat',
  signals: ['Virus:X'],
  metadata: { hash_sha256: 'ab' },
  contentLength: 5,
  contentType: 'a/b',
}

const newRemoteScan = (change: Partial<NewRemoteScan> = {}): NewRemoteScan => ({
  id: randomUUID(),
  queue,
  ttlMs: 60_000,
  source: { at: 'row', sealed: Buffer.from('sealed') },
  options: {
    kind: 'malware',
    contentName: 'naïve "name"',
    flagsSexy: true,
    accountId: null,
    identity: { bytes: 5, sha1: 'cd', sha256: 'ab' },
  },
  ...change,
})

describe('a remote scan', () => {
  let database: Awaited<ReturnType<typeof openTestDatabase>>
  const open = (queues = [queue]) => makeRemoteScanStore({ pool: database.pool, listQueues: () => queues })
  let remoteScans: ReturnType<typeof open>
  before(async () => {
    database = await openTestDatabase()
    remoteScans = open()
  })
  beforeEach(() => database.pool.query('truncate remote_scans'))
  after(() => database.drop())

  const claimOne = async () => {
    const [claimed] = await remoteScans.claim(1, leaseMs)
    assert.ok(claimed !== undefined)
    return claimed
  }
  const endLeases = () => database.pool.query(`update remote_scans set held_until = now() - interval '1 ms'`)

  test('reaches its worker unchanged, and its result reaches the caller once', async () => {
    const sources = [
      { at: 'row' as const, sealed: Buffer.from([0, 255, 7]) },
      { at: 'storage' as const, key: 'k', sealedKey: Buffer.from([1, 0, 255]) },
      { at: 'url' as const, url: 'https://a.test/x' },
      { at: 'row' as const, sealed: Buffer.alloc(65_000, 9) },
    ]
    const asked = sources.map((source) => newRemoteScan({ source }))
    await Promise.all(asked.map(remoteScans.add))
    const claimed = await remoteScans.claim(10, leaseMs)
    for (const { id, source, options } of asked) {
      const found = claimed.find(({ lease }) => lease.id === id)
      assert.deepEqual([found?.source, found?.options], [source, options])
    }
    const [first, second] = claimed
    assert.ok(first !== undefined && second !== undefined)
    assert.equal(await remoteScans.complete(first.lease, { result }), true)
    assert.equal(await remoteScans.complete(second.lease, { failure: 'busy' }), true)
    assert.deepEqual(await remoteScans.take(first.lease.id), { state: 'done', result })
    assert.deepEqual(await remoteScans.take(first.lease.id), { state: 'missing' })
    assert.deepEqual(await remoteScans.take(second.lease.id), { state: 'failed', failure: 'busy' })
  })

  test('is claimed by one of many workers', async () => {
    const ids = Array.from({ length: 60 }, () => randomUUID())
    await Promise.all(ids.map((id) => remoteScans.add(newRemoteScan({ id }))))
    const claims = await Promise.all(Array.from({ length: 12 }, () => open().claim(10, leaseMs)))
    const more = await remoteScans.claim(60, leaseMs)
    const claimed = [...claims.flat(), ...more].map(({ lease }) => lease.id)
    assert.deepEqual(claimed.sort(), ids.sort())
  })

  test('of another queue is not claimed', async () => {
    await remoteScans.add(newRemoteScan({ queue: 'nsfw_image here' }))
    assert.deepEqual(await remoteScans.claim(1, leaseMs), [])
    assert.equal((await open(['nsfw_image here']).claim(1, leaseMs)).length, 1)
  })

  test('whose worker died is taken over, and the stale lease cannot complete it', async () => {
    const remoteScan = newRemoteScan()
    await remoteScans.add(remoteScan)
    const { lease: stale } = await claimOne()
    assert.deepEqual(await remoteScans.claim(1, leaseMs), [], 'not while it lives')
    await endLeases()
    const { lease } = await claimOne()
    assert.deepEqual(await remoteScans.extend([stale, lease], leaseMs), [lease])
    assert.equal(await remoteScans.complete(stale, { result }), false)
    await remoteScans.release(stale)
    const news = await remoteScans.take(remoteScan.id)
    assert.ok(news.state === 'open' && news.attempts === 2 && news.freeMs < 0)
  })

  test('fails after the maximum number of attempts', async () => {
    const { id } = newRemoteScan()
    await remoteScans.add(newRemoteScan({ id }))
    for (let i = 0; i < maxRemoteScanAttempts; i++) {
      await claimOne()
      await endLeases()
    }
    assert.deepEqual(await remoteScans.claim(1, leaseMs), [])
    const news = await remoteScans.take(id)
    assert.ok(news.state === 'open' && news.attempts === maxRemoteScanAttempts && news.freeMs > 0)
  })

  test('that is released can be claimed at once, and the attempt does not count', async () => {
    const { id } = newRemoteScan()
    await remoteScans.add(newRemoteScan({ id }))
    await remoteScans.release((await claimOne()).lease)
    const news = await remoteScans.take(id)
    assert.ok(news.state === 'open' && news.attempts === 0)
    await claimOne()
  })

  test('that was removed cannot be extended or completed', async () => {
    await remoteScans.add(newRemoteScan())
    const { lease } = await claimOne()
    await remoteScans.remove(lease.id)
    assert.deepEqual(await remoteScans.extend([lease], leaseMs), [])
    assert.equal(await remoteScans.complete(lease, { result }), false)
  })

  test('that has expired is deleted, and the location of its content returned', async () => {
    const source = { at: 'storage' as const, key: 'old', sealedKey: Buffer.from('sealed') }
    await remoteScans.add(newRemoteScan({ source, ttlMs: -1 }))
    await remoteScans.add(newRemoteScan({ source: { at: 'storage', key: 'new', sealedKey: Buffer.from('sealed') } }))
    assert.deepEqual(await remoteScans.listNeeded(['old', 'new', 'other']).then((keys) => keys.sort()), ['new', 'old'])
    assert.equal((await remoteScans.claim(5, leaseMs)).length, 1, 'nor is it begun')
    assert.deepEqual(await remoteScans.deleteExpired(), [source])
    assert.deepEqual(await remoteScans.deleteExpired(), [])
    assert.deepEqual(await remoteScans.listNeeded(['old', 'new']), ['new'])
  })
})
