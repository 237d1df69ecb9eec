import assert from 'node:assert/strict'
import { randomBytes, randomUUID } from 'node:crypto'
import { after, before, describe, test } from 'node:test'
import { makeAdmissionGate } from '../../src/database/admission-gate.ts'
import { openDatabase } from '../../src/database/open-database.ts'
import type { AdmissionAnswer, AdmissionGate } from '../../src/domain/ports/admission-gate.ts'
import { silentLog } from '../support/silent-log.ts'
import { newTestScan } from '../support/test-scan.ts'
import { leaseMs, newSubmit, openTestJobs, type TestJobs, testQueue } from './test-jobs.ts'

const count = (answers: AdmissionAnswer[], outcome: AdmissionAnswer['outcome']) =>
  answers.filter((a) => a.outcome === outcome).length

describe('a submission', () => {
  let stores: TestJobs
  before(async () => {
    stores = await openTestJobs()
  })
  after(() => stores.close())

  test('is charged, recorded and queued in one transaction, with its content unchanged', async () => {
    const { id, digest } = await stores.register({ credits: 5 })
    const contents = [randomBytes(1), randomBytes(100_000), Buffer.alloc(0), randomBytes(1024)]
    const asks = contents.map((sealed) => newSubmit(digest, { source: { at: 'row', sealed } }))
    await Promise.all(asks.map((ask) => stores.gate.admit(ask)))
    assert.deepEqual(await stores.getBalance(id), { remaining: 1, ledger: 1, debits: 4, scans: 4 })
    const claimed = await stores.jobs.claim(10, leaseMs)
    assert.deepEqual(
      claimed.map(({ scan }) => scan.id),
      asks.map(({ scan }) => scan.id),
    )
    assert.deepEqual(
      claimed.map(({ source }) => source),
      contents.map((sealed) => ({ at: 'row', sealed })),
    )
  })

  test('is claimed with all that a worker needs', async () => {
    await stores.clear()
    const { id, digest } = await stores.register({ flagsSexy: false })
    const scan = newTestScan({ mode: 'async', kind: 'nsfw_image', contentName: 'ü.png' })
    const source = { at: 'storage' as const, key: 'a/b', sealedKey: Buffer.from([0, 255, 7]) }
    const job = { source, callbackUrl: 'https://User@Receiver.test:8443/x?y' }
    await stores.gate.admit({ keyDigest: digest, countsRequest: false, scan, job: { ...job, queue: testQueue } })
    const [claimed] = await stores.jobs.claim(1, leaseMs)
    const { mode, region, ...kept } = scan
    const { lease, ...rest } = claimed ?? {}
    assert.deepEqual(rest, { ...job, accountId: id, flagsSexy: false, scan: kept, attempt: 1 })
    assert.equal(lease?.scanId, scan.id)
    assert.deepEqual(await stores.jobs.listNeeded(['a/b', 'a/c']), ['a/b'])
  })

  test('without credit leaves no job, and of many at once exactly those that are paid are queued', async () => {
    const { id, digest } = await stores.register({ credits: 7 })
    const gates = [stores.gate, makeAdmissionGate(stores.database)]
    const answers = await Promise.all(Array.from({ length: 40 }, (_, i) => gates[i % 2]?.admit(newSubmit(digest))))
    assert.equal(answers.filter((a) => a?.outcome === 'admitted').length, 7)
    assert.equal(answers.filter((a) => a?.outcome === 'out-of-credit').length, 33)
    assert.deepEqual(await stores.getBalance(id), { remaining: 0, ledger: 0, debits: 7, scans: 7 })
    assert.equal(await stores.count('jobs', id), 7)
  })

  test('that is rate-limited leaves no job', async () => {
    const { id, digest } = await stores.register({ rate: { requests: 2, periodSeconds: 60 } })
    await Promise.all(Array.from({ length: 5 }, () => stores.gate.admit(newSubmit(digest))))
    assert.equal(await stores.count('jobs', id), 2)
  })

  test('repeated with the same id is queued and charged once', async () => {
    const { id, digest } = await stores.register({ credits: 5 })
    const ask = newSubmit(digest)
    const answers = await Promise.all([ask, ask, newSubmit(digest)].map((a) => stores.gate.admit(a)))
    assert.equal(count([...answers, await stores.gate.admit(ask)], 'admitted'), 4)
    assert.deepEqual(await stores.getBalance(id), { remaining: 3, ledger: 3, debits: 2, scans: 2 })
    assert.equal(await stores.count('jobs', id), 2)
  })

  test('that the database rejects fails alone, without charge or job', async () => {
    const { id, digest } = await stores.register({ credits: 5 })
    const bad = { ...newSubmit(digest), scan: newTestScan({ contentName: 'no text: \u0000' }) }
    const completed = await Promise.allSettled(
      [newSubmit(digest), bad, newSubmit(digest)].map((ask) => stores.gate.admit(ask)),
    )
    assert.deepEqual(
      completed.map(({ status }) => status),
      ['fulfilled', 'rejected', 'fulfilled'],
    )
    assert.deepEqual(await stores.getBalance(id), { remaining: 3, ledger: 3, debits: 2, scans: 2 })
    assert.equal(await stores.count('jobs', id), 2)
  })

  test('after the end of a period rolls it, and is charged to the new one', async () => {
    const { id, digest } = await stores.register({ credits: 3 })
    await stores.age(id, 40)
    assert.equal((await stores.gate.admit(newSubmit(digest))).outcome, 'admitted')
    assert.equal((await stores.getBalance(id))?.remaining, 2)
  })
})

describe('an idempotency key', () => {
  let stores: TestJobs
  before(async () => {
    stores = await openTestJobs()
  })
  after(() => stores.close())

  const withKey = (digest: string, key: string, fingerprint = 'aabb', operation = 'submit') => ({
    ...newSubmit(digest),
    idempotency: { operation, key, fingerprint },
  })

  test('is charged once, and a repeat gets the first scan', async () => {
    const { id, digest } = await stores.register({ credits: 5 })
    const first = withKey(digest, 'k', 'aa')
    assert.equal(await stores.idempotency.findRepeat(id, 'submit', 'k'), undefined)
    assert.equal((await stores.gate.admit(first)).outcome, 'admitted')
    const again = await stores.gate.admit(withKey(digest, 'k', 'bb'))
    assert.ok(again.outcome === 'repeated')
    assert.deepEqual([again.scanId, again.fingerprint], [first.scan.id, 'aa'])
    assert.equal(again.caller.creditRemaining, 4)
    assert.deepEqual(await stores.idempotency.findRepeat(id, 'submit', 'k'), {
      scanId: first.scan.id,
      fingerprint: 'aa',
    })
    assert.deepEqual(await stores.getBalance(id), { remaining: 4, ledger: 4, debits: 1, scans: 1 })
    assert.equal(await stores.count('jobs', id), 1)
  })

  test('counts within its account and its operation', async () => {
    const [a, b] = [await stores.register(), await stores.register()]
    const asks = [withKey(a.digest, 'k'), withKey(b.digest, 'k'), withKey(a.digest, 'k', 'aa', 'other')]
    assert.equal(count(await Promise.all(asks.map((ask) => stores.gate.admit(ask))), 'admitted'), 3)
  })

  test('works the same for a synchronous scan', async () => {
    const { id, digest } = await stores.register({ credits: 5 })
    const ask = () => {
      const scan = newTestScan({ status: 'clean', signals: [], completedAt: new Date() })
      const idempotency = { operation: 'scan', key: 'k', fingerprint: 'aa' }
      return stores.gate.admit({ keyDigest: digest, countsRequest: true, scan, idempotency })
    }
    const answers = await Promise.all([ask(), ask(), ask()])
    assert.deepEqual([count(answers, 'admitted'), count(answers, 'repeated')], [1, 2])
    assert.deepEqual(await stores.getBalance(id), { remaining: 4, ledger: 4, debits: 1, scans: 1 })
    assert.equal(await stores.count('jobs', id), 0)
  })

  test('is not stored for a submission without credit', async () => {
    const { id, digest } = await stores.register({ credits: 0 })
    assert.equal((await stores.gate.admit(withKey(digest, 'k'))).outcome, 'out-of-credit')
    assert.equal(await stores.count('idempotency_keys', id), 0)
    await stores.accounts.grantCredits(id, 1, 'test')
    assert.equal((await stores.gate.admit(withKey(digest, 'k'))).outcome, 'admitted')
    assert.equal(
      (await stores.gate.admit(withKey(digest, 'k'))).outcome,
      'repeated',
      'the last credit went to the first',
    )
  })

  test('is one charge and one repeat in a batch of many others', async () => {
    const { id, digest } = await stores.register({ credits: 3 })
    const twins = [withKey(digest, 'k'), withKey(digest, 'k')]
    const asks = [newSubmit(digest), ...twins, newSubmit(digest), newSubmit(digest)]
    const answers = await Promise.all(asks.map((ask) => stores.gate.admit(ask)))
    assert.deepEqual(
      answers.map(({ outcome }) => outcome),
      ['admitted', 'admitted', 'repeated', 'admitted', 'out-of-credit'],
    )
    assert.deepEqual(await stores.getBalance(id), { remaining: 0, ledger: 0, debits: 3, scans: 3 })
  })

  test('used by two services at the same time is charged once, in every one of many rounds', async () => {
    const url = stores.database.url
    const pools = await Promise.all([1, 2].map(() => openDatabase({ url, connections: 3, log: silentLog })))
    try {
      const gates = [...pools, ...pools].map(makeAdmissionGate) as AdmissionGate[]
      const { id, digest } = await stores.register({ credits: 1000 })
      const other = await stores.register({ credits: 1000 })
      for (let round = 0; round < 60; round++) {
        const keys = [randomUUID(), randomUUID(), randomUUID()]
        const answers = await Promise.all(
          gates.flatMap((gate, g) => {
            // Each service in an order of its own, with another account's and keyless ones in between.
            const mine = g % 2 === 0 ? keys : keys.toReversed()
            const noise = withKey(other.digest, keys[g % 3] as string)
            return [...mine.map((key) => withKey(digest, key)), noise].map((ask) => gate.admit(ask))
          }),
        )
        assert.equal(count(answers, 'admitted') + count(answers, 'repeated'), answers.length)
        assert.equal(await stores.count('scans', id), 3 * (round + 1))
      }
      const balance = { remaining: 820, ledger: 820, debits: 180, scans: 180 }
      assert.deepEqual(await stores.getBalance(id), balance)
      assert.deepEqual(await stores.getBalance(other.id), balance)
      assert.equal(await stores.count('jobs', id), 180)
      assert.deepEqual(await stores.accounts.listUnbalanced(), [])
    } finally {
      await Promise.all(pools.map(({ close }) => close()))
    }
  })

  test('used by two services for the last credit is admitted once and repeated, never refused', async () => {
    const gates = [stores.gate, makeAdmissionGate(stores.database), makeAdmissionGate(stores.database)]
    for (let round = 0; round < 30; round++) {
      const { digest, id } = await stores.register({ credits: 1 })
      const answers = await Promise.all(gates.map((gate) => gate.admit(withKey(digest, 'k'))))
      assert.deepEqual([count(answers, 'admitted'), count(answers, 'repeated')], [1, 2])
      assert.deepEqual(await stores.getBalance(id), { remaining: 0, ledger: 0, debits: 1, scans: 1 })
    }
  })

  test('that turns out to be a repeat takes no credit from other scans of its batch', async () => {
    const gates = [stores.gate, makeAdmissionGate(stores.database)] as [AdmissionGate, AdmissionGate]
    for (let round = 0; round < 30; round++) {
      const { digest, id } = await stores.register({ credits: 2 })
      const answers = await Promise.all([
        gates[0].admit(withKey(digest, 'k')),
        gates[1].admit(withKey(digest, 'k')),
        gates[1].admit(newSubmit(digest)),
      ])
      assert.deepEqual([count(answers, 'admitted'), count(answers, 'repeated')], [2, 1])
      assert.deepEqual(await stores.getBalance(id), { remaining: 0, ledger: 0, debits: 2, scans: 2 })
    }
  })

  test('is deleted when it is old', async () => {
    const { id, digest } = await stores.register()
    await stores.gate.admit(withKey(digest, 'old'))
    await stores.gate.admit(withKey(digest, 'new'))
    await stores.pool.query(
      `update idempotency_keys set created_at = '2020-01-01' where account_id = $1 and key = 'old'`,
      [id],
    )
    assert.equal(await stores.idempotency.deleteIdempotencyKeys(86_400_000), 1)
    assert.equal(await stores.idempotency.findRepeat(id, 'submit', 'old'), undefined)
    assert.ok((await stores.idempotency.findRepeat(id, 'submit', 'new')) !== undefined)
  })
})
