import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { after, before, beforeEach, describe, test } from 'node:test'
import { makeJobStore } from '../../src/database/job-store.ts'
import type { ClaimedJob } from '../../src/domain/ports/job-store.ts'
import { leaseMs, openTestJobs, type TestJobs, toCompletion } from './test-jobs.ts'

const toIds = (claimed: ClaimedJob[]) => claimed.map(({ scan }) => scan.id)

describe('claims', () => {
  let stores: TestJobs
  before(async () => {
    stores = await openTestJobs()
  })
  beforeEach(() => stores.clear())
  after(() => stores.close())

  test('of an account come first in, first out', async () => {
    const { digest } = await stores.register()
    const ids: string[] = []
    for (let i = 0; i < 20; i++) ids.push(await stores.submit(digest))
    const claimed: string[] = []
    for (const limit of [1, 7, 100]) claimed.push(...toIds(await stores.jobs.claim(limit, leaseMs)))
    assert.deepEqual(claimed, ids)
    assert.deepEqual(await stores.jobs.claim(10, leaseMs), [])
  })

  test('of jobs that no process could do for a day take those of every queue', async () => {
    const { digest } = await stores.register()
    const old = await stores.submit(digest, { queue: 'malware another-store' })
    await stores.submit(digest)
    const dayMs = 86_400_000
    assert.deepEqual(await stores.jobs.claimAbandoned(dayMs, 10, leaseMs), [])
    await stores.pool.query(`update jobs set created_at = now() - interval '25 hours' where scan_id = $1`, [old])
    assert.deepEqual(toIds(await stores.jobs.claimAbandoned(dayMs, 10, leaseMs)), [old])
    assert.deepEqual(await stores.jobs.claimAbandoned(dayMs, 10, leaseMs), [], 'another process holds it')
  })

  test('from an empty queue take one statement, and none is missed that comes after it', async (t) => {
    const connect = t.mock.method(stores.pool, 'connect')
    assert.deepEqual(await stores.jobs.claim(10, leaseMs), [])
    assert.equal(connect.mock.callCount(), 1)
    const { digest } = await stores.register()
    const id = await stores.submit(digest)
    assert.deepEqual(toIds(await stores.jobs.claim(10, leaseMs)), [id])
    await stores.endLeases()
    assert.deepEqual(toIds(await stores.jobs.claim(10, leaseMs)), [id], 'its lease has ended, and no other waits')
  })

  test('take one account’s only job next though another account has 10,000', async () => {
    const [many, few] = [await stores.register(), await stores.register()]
    await stores.fill(many.id, 10_000)
    const id = await stores.submit(few.digest)
    const claimed = await stores.jobs.claim(8, leaseMs)
    assert.equal(claimed.length, 8, 'and the rest is for the other')
    assert.ok(toIds(claimed).includes(id))
  })

  test('of one job at a time rotate over the accounts, also when each is completed before the next', async () => {
    const accounts = await Promise.all([1, 2, 3].map(() => stores.register()))
    for (const { id } of accounts) await stores.fill(id, 100)
    const served: string[] = []
    for (let i = 0; i < 9; i++) {
      const [job] = await stores.jobs.claim(1, leaseMs)
      assert.ok(job !== undefined && (await stores.jobs.complete(job.lease, toCompletion(job))))
      served.push(job.accountId)
    }
    for (const { id } of accounts) assert.equal(served.filter((other) => other === id).length, 3)
    assert.equal(new Set(served.slice(0, 3)).size, 3)
  })

  test('give each of many accounts its share, and fill up with those who have more', async () => {
    const accounts = await Promise.all(Array.from({ length: 10 }, () => stores.register()))
    for (const { id } of accounts.slice(1)) await stores.fill(id, 2)
    await stores.fill(accounts[0]?.id ?? '', 500)
    const claimed = await stores.jobs.claim(64, leaseMs)
    assert.equal(claimed.length, 64)
    for (const { id } of accounts.slice(1)) assert.equal(claimed.filter((job) => job.accountId === id).length, 2)
  })

  test('by many processes at once give every job to one of them, and leave none', async () => {
    const accounts = await Promise.all([1, 2, 3].map(() => stores.register()))
    for (const { id } of accounts) await stores.fill(id, 200)
    const replicas = [stores.jobs, makeJobStore(stores), makeJobStore(stores), makeJobStore(stores)]
    const claimed: string[] = []
    await Promise.all(
      replicas.map(async (store) => {
        for (let empty = 0; empty < 2; ) {
          const ids = toIds(await store.claim(16, leaseMs))
          claimed.push(...ids)
          empty = ids.length === 0 ? empty + 1 : 0
        }
      }),
    )
    assert.equal(claimed.length, 600)
    assert.equal(new Set(claimed).size, 600)
  })

  test('count attempts, and take over jobs whose lease has run out, but not before', async () => {
    const { digest } = await stores.register()
    const id = await stores.submit(digest)
    const other = makeJobStore(stores)
    const [first] = await stores.jobs.claim(1, leaseMs)
    assert.deepEqual(await other.claim(1, leaseMs), [])
    await stores.endLeases()
    const [second] = await other.claim(1, leaseMs)
    assert.deepEqual([first?.attempt, second?.attempt, second?.scan.id], [1, 2, id])
    assert.notEqual(first?.lease.token, second?.lease.token)
  })

  test('expire by the clock of the database', async () => {
    const { digest } = await stores.register()
    await stores.submit(digest)
    assert.equal((await stores.jobs.claim(1, 1)).length, 1)
    await stores.pool.query('select pg_sleep(0.01)')
    assert.equal((await stores.jobs.claim(1, leaseMs)).length, 1)
  })

  test('that are extended stay valid; lost leases are not returned', async () => {
    const { digest } = await stores.register()
    await stores.submit(digest)
    await stores.submit(digest)
    const [kept, lost] = await stores.jobs.claim(2, leaseMs)
    assert.ok(kept !== undefined && lost !== undefined)
    await stores.pool.query(`update jobs set held_until = now() - interval '1 s' where scan_id = $1`, [lost.scan.id])
    assert.equal((await makeJobStore(stores).claim(5, leaseMs)).length, 1)
    await stores.endLeases()
    const leases = [kept.lease, lost.lease, { scanId: randomUUID(), token: randomUUID() }]
    assert.deepEqual(await stores.jobs.extend(leases, leaseMs), [kept.lease])
    const claimed = await stores.jobs.claim(5, leaseMs)
    assert.deepEqual(toIds(claimed), [lost.scan.id], 'the other one is held again')
  })

  test('that are released wait for their pause, and keep their position and their attempts', async () => {
    const { digest } = await stores.register()
    const [a, b] = [await stores.submit(digest), await stores.submit(digest)]
    const [first] = await stores.jobs.claim(1, leaseMs)
    await stores.jobs.release(first?.lease ?? { scanId: '', token: '' }, { ms: 60_000, countsAttempt: true })
    assert.deepEqual((await stores.jobs.countJobs()).waiting, 2)
    const [other] = await stores.jobs.claim(5, leaseMs)
    assert.equal(other?.scan.id, b)
    await stores.jobs.release(other?.lease ?? { scanId: '', token: '' }, { ms: 0, countsAttempt: true })
    await stores.pool.query(`update jobs set held_until = now() - interval '1 ms' where scan_id = $1`, [a])
    const claimed = await stores.jobs.claim(5, leaseMs)
    assert.deepEqual(toIds(claimed), [a, b])
    assert.deepEqual(
      claimed.map(({ attempt }) => attempt),
      [2, 2],
    )
    await stores.jobs.release(first?.lease ?? { scanId: '', token: '' }, { ms: 0, countsAttempt: true })
    assert.deepEqual(await stores.jobs.claim(5, leaseMs), [], 'a stale lease gives nothing back')
  })

  test('are counted', async () => {
    assert.deepEqual(await stores.jobs.countJobs(), { waiting: 0, running: 0, oldestSeconds: 0 })
    const { digest } = await stores.register()
    for (let i = 0; i < 5; i++) await stores.submit(digest)
    await stores.jobs.claim(2, leaseMs)
    await stores.pool.query(`update jobs set created_at = now() - interval '1 day' where lease_token is not null`)
    const countJobs = async () => {
      const { oldestSeconds, ...counts } = await stores.jobs.countJobs()
      assert.ok(oldestSeconds >= 86_400 && oldestSeconds < 2 * 86_400, String(oldestSeconds))
      return counts
    }
    assert.deepEqual(await countJobs(), { waiting: 3, running: 2 })
    await stores.endLeases()
    assert.deepEqual(await countJobs(), { waiting: 5, running: 0 })
  })
})
