import assert from 'node:assert/strict'
import { after, before, beforeEach, describe, test } from 'node:test'
import type { Pool } from 'pg'
import { makeAdmissionGate } from '../../src/database/admission-gate.ts'
import { makeJobStore } from '../../src/database/job-store.ts'
import type { ClaimedJob } from '../../src/domain/ports/job-store.ts'
import { newTestScan } from '../support/test-scan.ts'
import { leaseMs, openTestJobs, type TestJobs, toCompletion, toFailure } from './test-jobs.ts'

describe('a job', () => {
  let stores: TestJobs
  before(async () => {
    stores = await openTestJobs()
  })
  beforeEach(() => stores.clear())
  after(() => stores.close())

  const claimOne = async (): Promise<ClaimedJob> => {
    const [job] = await stores.jobs.claim(1, leaseMs)
    assert.ok(job !== undefined)
    return job
  }

  test('ends with its verdict, and is charged once however often it was tried', async () => {
    const { id, digest } = await stores.register({ credits: 5 })
    const scanId = await stores.submit(digest)
    await claimOne()
    await stores.endLeases()
    const job = await claimOne()
    const scan = {
      ...job.scan,
      status: 'threat' as const,
      signals: ['Virus:A'],
      metadata: { hash_sha1: 'x' },
      completedAt: new Date(),
      contentLength: 77,
      contentType: 'image/png',
      contentName: 'a "b".png',
    }
    assert.equal(await stores.jobs.complete(job.lease, toCompletion(job, { scan })), true)
    assert.deepEqual(await stores.scans.findScan(id, 'malware', scanId), scan)
    assert.deepEqual(await stores.getBalance(id), { remaining: 4, ledger: 4, debits: 1, scans: 1 })
    assert.deepEqual(await stores.jobs.countJobs(), { waiting: 0, running: 0, oldestSeconds: 0 })
    assert.deepEqual(await stores.jobs.listNeeded([]), [])
  })

  test('cannot be completed by a stale worker, nor twice', async () => {
    const { id, digest } = await stores.register({ credits: 5 })
    const scanId = await stores.submit(digest, { callbackUrl: 'https://r.test/' })
    const stale = await claimOne()
    await stores.endLeases()
    const fresh = await claimOne()
    assert.equal(await stores.jobs.complete(stale.lease, toFailure(stale)), false)
    assert.equal((await stores.scans.findScan(id, 'malware', scanId))?.status, 'pending')
    assert.equal(await stores.jobs.complete(fresh.lease, toCompletion(fresh)), true)
    assert.equal(await stores.jobs.complete(fresh.lease, toFailure(fresh)), false)
    assert.equal(await stores.jobs.complete(stale.lease, toFailure(stale)), false)
    assert.equal((await stores.scans.findScan(id, 'malware', scanId))?.status, 'clean')
    assert.deepEqual(await stores.getBalance(id), { remaining: 4, ledger: 4, debits: 1, scans: 1 })
    assert.equal(await stores.count('deliveries', id), 1)
  })

  test('that waits again after its lease ran out cannot be completed', async () => {
    const { digest } = await stores.register()
    await stores.submit(digest)
    const job = await claimOne()
    await stores.jobs.release(job.lease, { ms: 0, countsAttempt: true })
    assert.equal(await stores.jobs.complete(job.lease, toCompletion(job)), false)
    assert.equal((await stores.jobs.countJobs()).waiting, 1)
  })

  test('with a stale lease changes nothing in a batch of valid ones', async () => {
    const { id, digest } = await stores.register({ credits: 50 })
    for (let i = 0; i < 20; i++) await stores.submit(digest, { callbackUrl: 'https://r.test/' })
    const stale = await stores.jobs.claim(10, leaseMs)
    await stores.endLeases()
    const fresh = await makeJobStore(stores).claim(10, leaseMs)
    const mine = await stores.jobs.claim(10, leaseMs)
    const results = await Promise.all([...stale, ...mine].map((job) => stores.jobs.complete(job.lease, toFailure(job))))
    assert.deepEqual(results, [...Array(10).fill(false), ...Array(10).fill(true)])
    assert.equal((await stores.jobs.countJobs()).running, 10)
    assert.deepEqual(await stores.getBalance(id), { remaining: 40, ledger: 40, debits: 20, scans: 20 })
    assert.equal(await stores.count('deliveries', id), 10)
    const after = await Promise.all(fresh.map((job) => stores.jobs.complete(job.lease, toCompletion(job))))
    assert.ok(after.every(Boolean))
  })

  test('that two workers complete at the same time is completed by the newer one, in every one of many rounds', async () => {
    const { id, digest } = await stores.register({ credits: 1000 })
    const other = makeJobStore(stores)
    for (let round = 0; round < 30; round++) {
      await stores.submit(digest)
      const stale = await claimOne()
      await stores.endLeases()
      const [claimed, completed] = await Promise.all([
        other.claim(1, leaseMs),
        stores.jobs.complete(stale.lease, toFailure(stale)),
      ])
      // A completion that comes too late locks its job until it has been refused, and claims skip locked jobs.
      const taken = completed || claimed.length > 0 ? claimed : await other.claim(1, leaseMs)
      const again = await Promise.all(taken.map((job) => other.complete(job.lease, toCompletion(job))))
      assert.equal([completed, ...again].filter(Boolean).length, 1)
    }
    assert.equal(await stores.count('jobs', id), 0)
    assert.deepEqual(await stores.accounts.listUnbalanced(), [])
  })

  test('leaves a delivery with its verdict, the exact bytes, and none without a callback', async () => {
    const { id, digest } = await stores.register()
    const url = 'https://Receiver.test:8443/hook?a=b'
    await stores.submit(digest, { callbackUrl: url })
    await stores.submit(digest)
    const body = '{"a":  "ü\\u0000 \\ud83d😀"}'
    for (const job of await stores.jobs.claim(2, leaseMs)) {
      await stores.jobs.complete(job.lease, toCompletion(job, { deliveryBody: body }))
    }
    assert.equal(await stores.count('deliveries', id), 1)
    const [claimed] = await stores.deliveries.claim({ limit: 5, perHost: 5, leaseMs })
    assert.deepEqual([claimed?.url, claimed?.body, claimed?.attempts], [url, body, 0])
    assert.match(claimed?.id ?? '', /^[0-9a-f]{8}-[0-9a-f]{4}-7/)
  })

  test('whose delivery cannot be written is not completed, and the others of its batch are', async () => {
    const { id, digest } = await stores.register()
    for (let i = 0; i < 3; i++) await stores.submit(digest, { callbackUrl: 'https://r.test/' })
    const jobs = await stores.jobs.claim(3, leaseMs)
    const completed = await Promise.allSettled(
      jobs.map((job, i) =>
        stores.jobs.complete(job.lease, toCompletion(job, i === 1 ? { deliveryBody: undefined } : {})),
      ),
    )
    assert.deepEqual(
      completed.map(({ status }) => status),
      ['fulfilled', 'rejected', 'fulfilled'],
    )
    assert.equal((await stores.scans.findScan(id, 'malware', jobs[1]?.scan.id ?? ''))?.status, 'pending')
    assert.equal(await stores.count('deliveries', id), 2)
  })
})

describe('a refund', () => {
  let stores: TestJobs
  before(async () => {
    stores = await openTestJobs()
  })
  beforeEach(() => stores.clear())
  after(() => stores.close())

  const failAll = async () => {
    const jobs = await stores.jobs.claim(100, leaseMs)
    return Promise.all(jobs.map((job) => stores.jobs.complete(job.lease, toFailure(job))))
  }
  const listRefunds = async (id: string) =>
    (await stores.accounts.listLedger(id, 1000)).filter(({ kind }) => kind === 'refund')

  test('gives each credit back once, to whom it belongs', async () => {
    const accounts = await Promise.all([1, 2, 3].map(() => stores.register({ credits: 10 })))
    for (const { digest } of accounts) for (let i = 0; i < 4; i++) await stores.submit(digest)
    assert.equal((await failAll()).filter(Boolean).length, 12)
    for (const { id } of accounts) {
      assert.deepEqual(await stores.getBalance(id), { remaining: 10, ledger: 10, debits: 4, scans: 4 })
      const balances = (await listRefunds(id)).map(({ balance }) => balance)
      assert.deepEqual(balances, [10, 9, 8, 7])
    }
  })

  test('goes into the period that is current, and never above its limit', async () => {
    const { id, digest } = await stores.register({ credits: 3 })
    for (let i = 0; i < 3; i++) await stores.submit(digest)
    await stores.age(id, 40)
    // The new period has all its credits but one.
    await stores.gate.admit({ keyDigest: digest, countsRequest: true, scan: toScan() })
    assert.equal((await failAll()).filter(Boolean).length, 3)
    assert.equal((await listRefunds(id)).length, 1)
    const balance = await stores.getBalance(id)
    assert.deepEqual([balance?.remaining, balance?.ledger], [3, 3])
  })

  test('and charges at the same time come to the right sum', async () => {
    const { id, digest } = await stores.register({ credits: 1000 })
    const replicas = [stores.jobs, makeJobStore(stores), makeJobStore(stores)]
    const gates = [stores.gate, makeAdmissionGate(stores)]
    for (let round = 0; round < 30; round++) {
      const claimed = []
      for (const store of replicas) {
        await stores.submit(digest)
        claimed.push(...(await store.claim(1, leaseMs)).map((job) => ({ store, job })))
      }
      await Promise.all([
        ...claimed.map(({ store, job }) => store.complete(job.lease, toFailure(job))),
        ...gates.map((gate) => gate.admit({ keyDigest: digest, countsRequest: true, scan: toScan() })),
      ])
    }
    assert.equal((await listRefunds(id)).length, 90)
    const balance = await stores.getBalance(id)
    assert.deepEqual([balance?.remaining, balance?.ledger], [940, 940])
  })

  const toScan = () => newTestScan({ status: 'clean', signals: [], completedAt: new Date() })
})

test('results of jobs gather for longer than other writes, because no caller waits for them', async (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] })
  t.mock.method(performance, 'now', () => 0)
  const sizes: number[] = []
  const query = async ({ values: [results] }: { values: [string] }) => {
    sizes.push(JSON.parse(results).length)
    return { rows: [] }
  }
  const pool = { connect: async () => ({ query, release: () => {} }) } as unknown as Pool
  const { complete } = makeJobStore({ pool, listQueues: () => [] })
  const completeSome = (count: number) =>
    Array.from({ length: count }, (_, i) => {
      const scan = newTestScan({ mode: 'async' })
      const completion = { scan, refunds: false, deliveryBody: undefined }
      return complete({ scanId: scan.id, token: String(i) }, completion)
    })
  await Promise.all(completeSome(2))
  const next = completeSome(3)
  for (let turn = 0; turn < 5; turn++) await new Promise(setImmediate)
  t.mock.timers.tick(19)
  for (let turn = 0; turn < 5; turn++) await new Promise(setImmediate)
  assert.deepEqual(sizes, [2])
  t.mock.timers.tick(1)
  await Promise.all(next)
  assert.deepEqual(sizes, [2, 3])
})
