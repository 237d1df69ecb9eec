import assert from 'node:assert/strict'
import { after, afterEach, before, describe, test } from 'node:test'
import { makeTestWebhookStore } from '../../src/database/delivery-store.ts'
import { makeJobStore } from '../../src/database/job-store.ts'
import { toKeyDigest } from '../../src/domain/accounts/keys.ts'
import type { Problem } from '../../src/domain/problem.ts'
import { listQueues } from '../../src/domain/scans/jobs.ts'
import { makeSubmitting } from '../../src/domain/scans/submitting.ts'
import { systemClock } from '../../src/runtime/clock.ts'
import { openTestJobs, type TestJobs } from '../database/test-jobs.ts'
import { newTestScan } from '../support/test-scan.ts'

const unused = () => {
  throw new Error('A test scan neither stores nor reads content')
}

describe('a test key', () => {
  let stores: TestJobs
  before(async () => {
    stores = await openTestJobs()
  })
  afterEach(() => stores.clear())
  after(() => stores.close())

  /** Registers an account with a live key and a test key. */
  async function register(credits: number) {
    const { id, digest } = await stores.register({ credits })
    const { key, apiKey } = await stores.registration.createKey(id, { name: 'ci', expiresAt: null, isTest: true })
    return { id, live: digest, test: toKeyDigest(apiKey), key, apiKey }
  }
  const charge = (keyDigest: string) => stores.gate.admit({ keyDigest, countsRequest: true, scan: newTestScan() })

  test('is recognised by its prefix and recorded as a test key', async () => {
    const { id, apiKey, key } = await register(1)
    assert.match(apiKey, /^assay_test_[0-9A-Za-z]{38}$/)
    assert.match(key.prefix, /^assay_test_.{5}$/)
    const kept = await stores.keys.listKeys(id)
    assert.deepEqual(kept.map(({ name, isTest }) => [name, isTest]).sort(), [
      ['ci', true],
      ['default', false],
    ])
  })

  test('is not charged, even in one batch with live keys of the same account', async () => {
    const { id, live, test } = await register(5)
    const asks = Array.from({ length: 20 }, (_, n) => charge(n % 2 === 0 ? live : test))
    const outcomes = (await Promise.all(asks)).map(({ outcome }) => outcome)
    assert(outcomes.every((outcome, n) => n % 2 === 0 || outcome === 'admitted'))
    assert.equal(outcomes.filter((outcome) => outcome === 'admitted').length, 15, 'ten tests, and five that paid')
    assert.deepEqual(await stores.getBalance(id), { remaining: 0, ledger: 0, debits: 5, scans: 15 })
    assert.deepEqual(await stores.accounts.listUnbalanced(), [])
  })

  test('is not charged for jobs and with idempotency keys, whatever credit is left', async () => {
    const { id, live, test } = await register(0)
    const ask = (keyDigest: string, idempotencyKey: string) =>
      stores.gate.admit({
        keyDigest,
        countsRequest: true,
        scan: newTestScan({ mode: 'async' }),
        job: { queue: 'test', source: { at: 'test', testCase: 'clean' }, callbackUrl: null },
        idempotency: { operation: 'test', key: idempotencyKey, fingerprint: 'ab'.repeat(32) },
      })
    const answers = await Promise.all([ask(test, 'a'), ask(live, 'b'), ask(test, 'a'), ask(test, 'c')])
    const outcomes = answers.map(({ outcome }) => outcome)
    assert.deepEqual(outcomes, ['admitted', 'out-of-credit', 'repeated', 'admitted'])
    assert.deepEqual(await stores.getBalance(id), { remaining: 0, ledger: 0, debits: 0, scans: 2 })
  })

  test('records a scan once when the gate is asked twice, as after a lost answer', async () => {
    const { id, test } = await register(0)
    const [scan, background] = [newTestScan(), newTestScan({ mode: 'async' })]
    const job = { queue: 'test', source: { at: 'test' as const, testCase: 'clean' }, callbackUrl: null }
    const later = { keyDigest: test, countsRequest: false }
    for (let times = 0; times < 2; times++) {
      assert.equal((await stores.gate.admit({ ...later, scan })).outcome, 'admitted')
      assert.equal((await stores.gate.admit({ ...later, scan: background, job })).outcome, 'admitted')
    }
    assert.equal((await stores.getBalance(id))?.scans, 2)
    assert.equal(await stores.count('jobs', id), 1)
  })

  test('has the rate limit of the account', async () => {
    const { id } = await stores.register({ rate: { requests: 2, periodSeconds: 60 } })
    const { apiKey } = await stores.registration.createKey(id, { name: 'ci', expiresAt: null, isTest: true })
    const asks = [1, 2, 3].map(() => stores.gate.admit({ keyDigest: toKeyDigest(apiKey), countsRequest: true }))
    const outcomes = (await Promise.all(asks)).map(({ outcome }) => outcome)
    assert.deepEqual(outcomes, ['admitted', 'admitted', 'rate-limited'])
  })

  test('causes so many webhooks a day and no more, for all test keys of the account together', async () => {
    const { id, test: digest } = await register(3)
    const admitted = await stores.gate.admit({ keyDigest: digest, countsRequest: true })
    assert(admitted.outcome === 'admitted')
    const { caller } = admitted
    const { submitUrl } = makeSubmitting({
      gate: stores.gate,
      describe: unused,
      clock: stores.database.clock,
      region: 'test',
      kinds: [],
      degradation: { findRefusal: unused },
      testWebhooks: makeTestWebhookStore(stores, { maxPerDay: 5 }),
      onQueued() {},
      contents: { newWriter: unused, toStoreId: unused, storeIds: [], open: unused, remove: unused, listKeys: unused },
    })
    const submit = (callbackUrl: string | null) =>
      submitUrl(caller, 'https://files.test/a.zip', {
        kind: 'malware',
        address: '192.0.2.1',
        contentName: null,
        callbackUrl,
        idempotency: undefined,
        countsRequest: false,
      })
    const outcomes = await Promise.allSettled(Array.from({ length: 8 }, () => submit('https://hooks.test/')))
    assert.equal(outcomes.filter(({ status }) => status === 'fulfilled').length, 5)
    const refused = await submit('https://hooks.test/').catch((error: Problem) => error.refusal)
    assert('kind' in refused && refused.kind === 'rate-limited')
    assert(refused.retryAfterSeconds > 0 && refused.retryAfterSeconds <= 86_400, String(refused.retryAfterSeconds))
    assert.match(refused.detail ?? '', /at most 5 webhooks a day/)
    assert((await submit(null)).isQueued, 'without a webhook')
    await stores.pool.query('update test_webhooks set day = day - 1')
    assert((await submit('https://hooks.test/')).isQueued, 'on the next day')
    assert.equal(await stores.count('jobs', id), 7)
  })

  test('holds a pending job for 60 s, lets any process claim it, and refunds nothing', async () => {
    const { id, test } = await register(3)
    const admitted = await stores.gate.admit({ keyDigest: test, countsRequest: true })
    assert(admitted.outcome === 'admitted' && admitted.caller.isTest)
    const { submitUrl } = makeSubmitting({
      gate: stores.gate,
      describe: unused,
      clock: systemClock,
      region: 'test',
      kinds: [],
      degradation: { findRefusal: unused },
      testWebhooks: { maxPerDay: 0, take: unused },
      onQueued() {},
      contents: { newWriter: unused, toStoreId: unused, storeIds: [], open: unused, remove: unused, listKeys: unused },
    })
    const request = {
      kind: 'malware' as const,
      address: '192.0.2.1',
      contentName: null,
      callbackUrl: null,
      idempotency: undefined,
      countsRequest: false,
    }
    const { scanId } = await submitUrl(admitted.caller, 'https://files.test/assay-test-pending.zip', request)
    const { rows } = await stores.pool.query<{ seconds: number }>(
      'select extract(epoch from held_until - created_at)::float8 as seconds from jobs where scan_id = $1',
      [scanId],
    )
    assert.deepEqual(rows, [{ seconds: 60 }])

    // A process without engines and without access to content.
    const jobs = makeJobStore({ ...stores, listQueues: () => listQueues([], []) })
    assert.deepEqual(await jobs.claim(10, 30_000), [])
    assert.deepEqual(await jobs.countJobs(), { waiting: 0, running: 0, oldestSeconds: 0 })
    await stores.endLeases()
    const [job] = await jobs.claim(10, 30_000)
    assert(job !== undefined)
    assert.deepEqual(job.source, { at: 'test', testCase: 'pending' })
    assert.equal(job.scan.id, scanId)
    assert.deepEqual(job.scan.metadata, { test: 'true' })

    const scan = { ...job.scan, status: 'clean' as const, signals: [], completedAt: new Date() }
    assert(await jobs.complete(job.lease, { scan, refunds: false, deliveryBody: undefined }))
    assert.deepEqual(await stores.getBalance(id), { remaining: 3, ledger: 3, debits: 0, scans: 1 })
  })
})
