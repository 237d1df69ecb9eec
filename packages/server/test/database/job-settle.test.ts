import assert from 'node:assert/strict'
import { after, before, beforeEach, describe, test } from 'node:test'
import { makeAdmissionGate } from '../../src/database/admission-gate.ts'
import { makeJobStore } from '../../src/database/job-store.ts'
import type { ClaimedJob } from '../../src/domain/ports/job-store.ts'
import { newTestScan } from '../support/test-office.ts'
import { leaseMs, openTestJobs, type TestJobs, toFailure, toSettlement } from './test-jobs.ts'

describe('a job', () => {
  let office: TestJobs
  before(async () => {
    office = await openTestJobs()
  })
  beforeEach(() => office.clear())
  after(() => office.close())

  const claimOne = async (): Promise<ClaimedJob> => {
    const [job] = await office.jobs.claim(1, leaseMs)
    assert.ok(job !== undefined)
    return job
  }

  test('ends with its verdict, and is charged once however often it was tried', async () => {
    const { id, digest } = await office.register({ credits: 5 })
    const scanId = await office.submit(digest)
    await claimOne()
    await office.endLeases()
    const job = await claimOne()
    const scan = {
      ...job.scan,
      ...{ status: 'threat' as const, signals: ['Virus:A'], metadata: { hash_sha1: 'x' }, completedAt: new Date() },
      ...{ contentLength: 77, contentType: 'image/png', contentName: 'a "b".png' },
    }
    assert.equal(await office.jobs.settle(job.lease, toSettlement(job, { scan })), true)
    assert.deepEqual(await office.scans.findScan(id, 'malware', scanId), scan)
    assert.deepEqual(await office.getBalance(id), { remaining: 4, ledger: 4, debits: 1, scans: 1 })
    assert.deepEqual(await office.jobs.countJobs(), { waiting: 0, running: 0, oldestAt: undefined })
    assert.deepEqual(await office.jobs.listNeeded([]), [])
  })

  test('cannot be settled by a stale worker, nor twice', async () => {
    const { id, digest } = await office.register({ credits: 5 })
    const scanId = await office.submit(digest, { callbackUrl: 'https://r.test/' })
    const stale = await claimOne()
    await office.endLeases()
    const fresh = await claimOne()
    assert.equal(await office.jobs.settle(stale.lease, toFailure(stale)), false)
    assert.equal((await office.scans.findScan(id, 'malware', scanId))?.status, 'pending')
    assert.equal(await office.jobs.settle(fresh.lease, toSettlement(fresh)), true)
    assert.equal(await office.jobs.settle(fresh.lease, toFailure(fresh)), false)
    assert.equal(await office.jobs.settle(stale.lease, toFailure(stale)), false)
    assert.equal((await office.scans.findScan(id, 'malware', scanId))?.status, 'clean')
    assert.deepEqual(await office.getBalance(id), { remaining: 4, ledger: 4, debits: 1, scans: 1 })
    assert.equal(await office.count('deliveries', id), 1)
  })

  test('that lapsed and waits again is nobody’s to settle', async () => {
    const { digest } = await office.register()
    await office.submit(digest)
    const job = await claimOne()
    await office.jobs.giveBack(job.lease, { ms: 0, counts: true })
    assert.equal(await office.jobs.settle(job.lease, toSettlement(job)), false)
    assert.equal((await office.jobs.countJobs()).waiting, 1)
  })

  test('of a stale worker changes nothing in a batch of good ones', async () => {
    const { id, digest } = await office.register({ credits: 50 })
    for (let i = 0; i < 20; i++) await office.submit(digest, { callbackUrl: 'https://r.test/' })
    const stale = await office.jobs.claim(10, leaseMs)
    await office.endLeases()
    const fresh = await makeJobStore(office).claim(10, leaseMs)
    const mine = await office.jobs.claim(10, leaseMs)
    const results = await Promise.all([...stale, ...mine].map((job) => office.jobs.settle(job.lease, toFailure(job))))
    assert.deepEqual(results, [...Array(10).fill(false), ...Array(10).fill(true)])
    assert.equal((await office.jobs.countJobs()).running, 10)
    assert.deepEqual(await office.getBalance(id), { remaining: 40, ledger: 40, debits: 20, scans: 20 })
    assert.equal(await office.count('deliveries', id), 10)
    const after = await Promise.all(fresh.map((job) => office.jobs.settle(job.lease, toSettlement(job))))
    assert.ok(after.every(Boolean))
  })

  test('that two workers settle at the same time is settled by the newer one, in every one of many rounds', async () => {
    const { id, digest } = await office.register({ credits: 1000 })
    const other = makeJobStore(office)
    for (let round = 0; round < 30; round++) {
      await office.submit(digest)
      const stale = await claimOne()
      await office.endLeases()
      const [taken, settled] = await Promise.all([
        other.claim(1, leaseMs),
        office.jobs.settle(stale.lease, toFailure(stale)),
      ])
      const again = await Promise.all(taken.map((job) => other.settle(job.lease, toSettlement(job))))
      assert.equal([settled, ...again].filter(Boolean).length, 1)
    }
    assert.equal(await office.count('jobs', id), 0)
    assert.deepEqual(await office.accounts.listUnbalanced(), [])
  })

  test('leaves a delivery with its verdict, the exact bytes, and none without a callback', async () => {
    const { id, digest } = await office.register()
    const url = 'https://Receiver.test:8443/hook?a=b'
    await office.submit(digest, { callbackUrl: url })
    await office.submit(digest)
    const body = '{"a":  "ü\\u0000 \\ud83d😀"}'
    for (const job of await office.jobs.claim(2, leaseMs)) {
      await office.jobs.settle(job.lease, toSettlement(job, { deliveryBody: body }))
    }
    assert.equal(await office.count('deliveries', id), 1)
    const [claimed] = await office.deliveries.claim({ limit: 5, perHost: 5, leaseMs })
    assert.deepEqual([claimed?.url, claimed?.body, claimed?.attempts], [url, body, 0])
    assert.match(claimed?.id ?? '', /^[0-9a-f]{8}-[0-9a-f]{4}-7/)
  })

  test('whose delivery cannot be written is not settled, and its neighbours are', async () => {
    const { id, digest } = await office.register()
    for (let i = 0; i < 3; i++) await office.submit(digest, { callbackUrl: 'https://r.test/' })
    const jobs = await office.jobs.claim(3, leaseMs)
    const settled = await Promise.allSettled(
      jobs.map((job, i) =>
        office.jobs.settle(job.lease, toSettlement(job, i === 1 ? { deliveryBody: undefined } : {})),
      ),
    )
    assert.deepEqual(
      settled.map(({ status }) => status),
      ['fulfilled', 'rejected', 'fulfilled'],
    )
    assert.equal((await office.scans.findScan(id, 'malware', jobs[1]?.scan.id ?? ''))?.status, 'pending')
    assert.equal(await office.count('deliveries', id), 2)
  })
})

describe('a refund', () => {
  let office: TestJobs
  before(async () => {
    office = await openTestJobs()
  })
  beforeEach(() => office.clear())
  after(() => office.close())

  const failAll = async () => {
    const jobs = await office.jobs.claim(100, leaseMs)
    return Promise.all(jobs.map((job) => office.jobs.settle(job.lease, toFailure(job))))
  }
  const listRefunds = async (id: string) =>
    (await office.accounts.listLedger(id, 1000)).filter(({ kind }) => kind === 'refund')

  test('gives each credit back once, to whom it belongs', async () => {
    const accounts = await Promise.all([1, 2, 3].map(() => office.register({ credits: 10 })))
    for (const { digest } of accounts) for (let i = 0; i < 4; i++) await office.submit(digest)
    assert.equal((await failAll()).filter(Boolean).length, 12)
    for (const { id } of accounts) {
      assert.deepEqual(await office.getBalance(id), { remaining: 10, ledger: 10, debits: 4, scans: 4 })
      const balances = (await listRefunds(id)).map(({ balance }) => balance)
      assert.deepEqual(balances, [10, 9, 8, 7])
    }
  })

  test('goes into the period that is current, and never above its limit', async () => {
    const { id, digest } = await office.register({ credits: 3 })
    for (let i = 0; i < 3; i++) await office.submit(digest)
    await office.age(id, 40)
    // The new period has all its credits but one.
    await office.gate.ask({ keyDigest: digest, takesRequest: true, scan: toScan() })
    assert.equal((await failAll()).filter(Boolean).length, 3)
    assert.equal((await listRefunds(id)).length, 1)
    const balance = await office.getBalance(id)
    assert.deepEqual([balance?.remaining, balance?.ledger], [3, 3])
  })

  test('and charges at the same time come to the right sum', async () => {
    const { id, digest } = await office.register({ credits: 1000 })
    const stores = [office.jobs, makeJobStore(office), makeJobStore(office)]
    const gates = [office.gate, makeAdmissionGate(office)]
    for (let round = 0; round < 30; round++) {
      const claimed = []
      for (const store of stores) {
        await office.submit(digest)
        claimed.push(...(await store.claim(1, leaseMs)).map((job) => ({ store, job })))
      }
      await Promise.all([
        ...claimed.map(({ store, job }) => store.settle(job.lease, toFailure(job))),
        ...gates.map((gate) => gate.ask({ keyDigest: digest, takesRequest: true, scan: toScan() })),
      ])
    }
    assert.equal((await listRefunds(id)).length, 90)
    const balance = await office.getBalance(id)
    assert.deepEqual([balance?.remaining, balance?.ledger], [940, 940])
  })

  const toScan = () => newTestScan({ status: 'clean', signals: [], completedAt: new Date() })
})
