import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { makeAdmissionGate } from '../../src/database/admission-gate.ts'
import { toKeyDigest } from '../../src/domain/accounts/keys.ts'
import type { AdmissionAnswer, AdmissionGate } from '../../src/domain/ports/admission-gate.ts'
import { newTestScan } from '../support/test-scan.ts'
import { openTestStores, type TestStores } from '../support/test-stores.ts'

/** Seconds. Such a rate window does not end during a test, even if the machine stands still for minutes. */
const day = 86_400
const count = (answers: AdmissionAnswer[], outcome: AdmissionAnswer['outcome']) =>
  answers.filter((a) => a.outcome === outcome).length
const times = <T>(n: number, make: () => T) => Array.from({ length: n }, make)

describe('the admission gate', () => {
  let stores: TestStores
  let gates: AdmissionGate[]
  before(async () => {
    stores = await openTestStores()
    // Three gates are three processes as far as the database can tell: each has its own batches.
    gates = [stores.gate, makeAdmissionGate(stores.database), makeAdmissionGate(stores.database)]
  })
  after(() => stores.close())

  const askAll = (asks: number, ask: (gate: AdmissionGate) => Promise<AdmissionAnswer>) =>
    Promise.all(Array.from({ length: asks }, (_, i) => ask(gates[i % gates.length] as AdmissionGate)))

  test('of 300 requests at once on a rate of 50, exactly 50 pass', async () => {
    const { digest } = await stores.register({ rate: { requests: 50, periodSeconds: day } })
    const answers = await askAll(300, (gate) => gate.admit({ keyDigest: digest, countsRequest: true }))
    assert.equal(count(answers, 'admitted'), 50)
    assert.equal(count(answers, 'rate-limited'), 250)
    const left = answers.flatMap((a) => (a.outcome === 'admitted' ? a.caller.requestsRemaining : []))
    assert.deepEqual(
      left.toSorted((a, b) => b - a),
      Array.from({ length: 50 }, (_, i) => 49 - i),
    )
  })

  test('of 120 scans at once on 30 credits, exactly 30 are recorded and charged', async () => {
    const { digest, id } = await stores.register({ credits: 30 })
    const answers = await askAll(120, (gate) =>
      gate.admit({ keyDigest: digest, countsRequest: true, scan: newTestScan() }),
    )
    assert.equal(count(answers, 'admitted'), 30)
    assert.equal(count(answers, 'out-of-credit'), 90)
    assert.deepEqual(await stores.getBalance(id), { remaining: 0, ledger: 0, debits: 30, scans: 30 })
  })

  test('12 scans at once on 3 credits give exactly 3, in one batch or in many', async () => {
    const { digest, id } = await stores.register({ credits: 3 })
    const answers = await Promise.all(
      times(12, () => stores.gate.admit({ keyDigest: digest, countsRequest: true, scan: newTestScan() })),
    )
    assert.equal(count(answers, 'admitted'), 3)
    const left = answers.flatMap((a) => (a.outcome === 'admitted' ? a.caller.creditRemaining : []))
    assert.deepEqual(left.toSorted(), [0, 1, 2])
    assert.deepEqual(await stores.getBalance(id), { remaining: 0, ledger: 0, debits: 3, scans: 3 })
  })

  test('keys of one account have windows of their own and one balance together', async () => {
    const { digest, id } = await stores.register({ credits: 10, rate: { requests: 8, periodSeconds: day } })
    const { apiKey } = await stores.registration.createKey(id, { name: 'second', expiresAt: null })
    const digests = [digest, toKeyDigest(apiKey)]
    const answers = await Promise.all(
      Array.from({ length: 40 }, (_, i) => {
        const gate = gates[i % 3] as AdmissionGate
        return gate.admit({ keyDigest: digests[i % 2] as string, countsRequest: true, scan: newTestScan() })
      }),
    )
    assert.equal(count(answers, 'admitted'), 10)
    assert.equal(count(answers, 'out-of-credit'), 6)
    assert.equal(count(answers, 'rate-limited'), 24)
  })

  test('keys of one account share the rate of the account, however many gates they use', async () => {
    const rate = { requests: 50, periodSeconds: 60 }
    await stores.plans.savePlan({
      name: 'shared',
      creditsPerPeriod: 1000,
      rate,
      accountRate: { requests: 70, periodSeconds: 60 },
      maxKeys: null,
    })
    const { digest, id } = await stores.register({ plan: 'shared' })
    const more = await Promise.all(
      [1, 2].map((n) => stores.registration.createKey(id, { name: `key ${n}`, expiresAt: null })),
    )
    const digests = [digest, ...more.map(({ apiKey }) => toKeyDigest(apiKey))]
    const askRound = () =>
      Promise.all(
        Array.from({ length: 180 }, (_, i) => {
          const scan = i % 2 === 0 ? { scan: newTestScan() } : {}
          const gate = gates[i % gates.length] as AdmissionGate
          return gate.admit({ keyDigest: digests[(i >> 2) % 3] as string, countsRequest: true, ...scan })
        }),
      )
    const answers = await askRound()
    assert.equal(count(answers, 'admitted'), 70)
    assert.equal(count(answers, 'rate-limited'), 110)
    for (const answer of answers) {
      assert(answer.outcome !== 'unknown-key' && answer.caller.requestsRemaining >= 0)
      // A window that another connection opened a moment later ends a moment later than 60 s from here.
      if (answer.outcome === 'rate-limited') assert(answer.retryAfterSeconds >= 1 && answer.retryAfterSeconds <= 61)
    }
    const stranger = await stores.register({ plan: 'shared' })
    const other = await stores.gate.admit({ keyDigest: stranger.digest, countsRequest: true })
    assert(other.outcome === 'admitted' && other.caller.requestsRemaining === 49)

    // The next window of the account is full again, and a request beyond the rate of its key takes nothing from it.
    await stores.ageWindows(61)
    const first = await Promise.all(times(60, () => stores.gate.admit({ keyDigest: digest, countsRequest: true })))
    assert.equal(count(first, 'admitted'), 50)
    const second = await Promise.all(
      times(60, () => stores.gate.admit({ keyDigest: digests[1] as string, countsRequest: true })),
    )
    assert.equal(count(second, 'admitted'), 20)
    const left = second.flatMap((a) => (a.outcome === 'admitted' ? a.caller.requestsRemaining : []))
    assert.deepEqual(
      left.toSorted((a, b) => a - b),
      Array.from({ length: 20 }, (_, i) => i),
    )
  })

  test('an account has at most as many active keys as its plan allows', async () => {
    const rate = { requests: 50, periodSeconds: 60 }
    await stores.plans.savePlan({ name: 'few', creditsPerPeriod: 10, rate, accountRate: null, maxKeys: 3 })
    const { id } = await stores.register({ plan: 'few' })
    const create = (more: object = {}) => stores.registration.createKey(id, { name: 'k', expiresAt: null, ...more })
    const outcomes = await Promise.allSettled(times(6, () => create()))
    const created = outcomes.flatMap((one) => (one.status === 'fulfilled' ? [one.value.key] : []))
    assert.equal(created.length, 2, 'beside the first key of the account')
    await assert.rejects(create(), /The plan of the account allows 3 active keys/)
    const [old] = created
    assert(old)
    await create({ replacesId: old.id })
    await stores.keys.revokeKey(old.id)
    await assert.rejects(create(), /allows 3 active keys/)
    await stores.keys.expireKey(id, created[1]?.id ?? '', -1000)
    await create()
  })

  test('a rate-limited request charges nothing and records nothing', async () => {
    const { digest, id } = await stores.register({ credits: 100, rate: { requests: 2, periodSeconds: day } })
    await Promise.all(
      times(9, () => stores.gate.admit({ keyDigest: digest, countsRequest: true, scan: newTestScan() })),
    )
    assert.deepEqual(await stores.getBalance(id), { remaining: 98, ledger: 98, debits: 2, scans: 2 })
  })

  test('a batch with too few credits, or whose period is over, is left to the statements for every case without an error', async () => {
    const { digest, id } = await stores.register({ credits: 1 })
    const admitted = await stores.gate.admit({ keyDigest: digest, countsRequest: true })
    assert.equal(admitted.outcome, 'admitted')
    const charge = async () =>
      (
        await stores.database.pool.query('select * from charge_scans($1, 1, $2, $3, null, null, null, null)', [
          Buffer.from(digest, 'hex'),
          2,
          '[]',
        ])
      ).rows[0]
    assert.equal((await charge()).accountId, null)
    await stores.accounts.grantCredits(id, 10, null)
    await stores.age(id, 60)
    assert.equal((await charge()).accountId, null)
    const { rows } = await stores.database.pool.query(
      'select used from rate_windows join api_keys on api_keys.id = key_id where account_id = $1',
      [id],
    )
    assert.deepEqual(rows, [{ used: 1 }])
  })

  test('asking again with the same scan is admitted and never charged twice', async () => {
    const { digest, id } = await stores.register({ credits: 5 })
    const scan = newTestScan()
    const ask = () => stores.gate.admit({ keyDigest: digest, countsRequest: false, scan })
    assert.equal((await ask()).outcome, 'admitted')
    assert.equal((await ask()).outcome, 'admitted')
    assert.deepEqual(await stores.getBalance(id), { remaining: 4, ledger: 4, debits: 1, scans: 1 })
  })

  for (const [how, more] of Object.entries({
    'a scan': {},
    'one with an idempotency key': { idempotency: { operation: 'scan', key: 'once', fingerprint: 'ab' } },
  })) {
    test(`${how} whose verdict rests on what the account has changed is counted, and neither charged nor recorded`, async () => {
      const { digest, id } = await stores.register({ credits: 5, rate: { requests: 9, periodSeconds: day } })
      const ask = (flagsSexy: boolean) =>
        stores.gate.admit({ keyDigest: digest, countsRequest: true, scan: newTestScan(), flagsSexy, ...more })
      await stores.accounts.updateAccount(id, { flagsSexy: false })
      const changed = await ask(true)
      assert.ok(changed.outcome === 'changed' && !changed.caller.flagsSexy)
      assert.equal(changed.caller.requestsRemaining, 8)
      assert.deepEqual(await stores.getBalance(id), { remaining: 5, ledger: 5, debits: 0, scans: 0 })
      const admitted = await ask(false)
      assert.ok(admitted.outcome === 'admitted' && admitted.caller.requestsRemaining === 7)
      assert.deepEqual(await stores.getBalance(id), { remaining: 4, ledger: 4, debits: 1, scans: 1 })
    })
  }

  for (const [how, more] of Object.entries({
    'a scan': {},
    'one with an idempotency key': { idempotency: { operation: 'scan', key: 'once', fingerprint: 'ab' } },
    'a background scan': { job: { queue: 'q', source: { at: 'url', url: 'https://a.test/' }, callbackUrl: null } },
  } as const)) {
    test(`${how} with a key whose restrictions have changed is counted, and neither charged nor recorded`, async () => {
      const { digest, id } = await stores.register({ credits: 5, rate: { requests: 9, periodSeconds: day } })
      const ask = (restrictions: string) =>
        stores.gate.admit({ keyDigest: digest, countsRequest: true, scan: newTestScan(), restrictions, ...more })
      const [key] = await stores.keys.listKeys(id)
      await stores.keys.restrictKey(key?.id ?? '', { allow: ['scan'], kinds: null, networks: null })
      const changed = await ask('')
      assert.ok(changed.outcome === 'changed' && changed.caller.restrictions === '{"allow":["scan"]}')
      assert.equal(changed.caller.requestsRemaining, 8)
      assert.deepEqual(await stores.getBalance(id), { remaining: 5, ledger: 5, debits: 0, scans: 0 })
      const admitted = await ask(changed.caller.restrictions)
      assert.ok(admitted.outcome === 'admitted' && admitted.caller.requestsRemaining === 7)
      assert.equal(admitted.caller.restrictions, changed.caller.restrictions)
      assert.deepEqual(await stores.getBalance(id), { remaining: 4, ledger: 4, debits: 1, scans: 1 })
    })
  }

  test('a scan that the database rejects fails alone and is not charged', async () => {
    const { digest, id } = await stores.register({ credits: 10 })
    const scans = [newTestScan(), newTestScan({ contentName: 'no text: \u0000' }), newTestScan(), newTestScan()]
    // The first fills a batch by itself; the bad one is in the middle of the next.
    const completed = await Promise.allSettled(
      [newTestScan(), ...scans].map((scan) => stores.gate.admit({ keyDigest: digest, countsRequest: false, scan })),
    )
    assert.equal(completed.filter(({ status }) => status === 'rejected').length, 1)
    assert.deepEqual(await stores.getBalance(id), { remaining: 6, ledger: 6, debits: 4, scans: 4 })
  })

  test('scans of one key are charged by what the key, the account and the window allow at that moment', async () => {
    const { digest, id } = await stores.register({ credits: 3, rate: { requests: 9, periodSeconds: day } })
    const ask = (countsRequest = true) =>
      stores.gate.admit({ keyDigest: digest, countsRequest, scan: newTestScan({ mode: 'sync' }) })
    const say = (answer: AdmissionAnswer) =>
      answer.outcome === 'unknown-key'
        ? [answer.outcome]
        : [answer.outcome, answer.caller.creditRemaining, answer.caller.requestsRemaining]
    // The first request opens the window. Those that follow find it open, which is the common case.
    assert.deepEqual(say(await ask()), ['admitted', 2, 8])
    assert.deepEqual(say(await ask()), ['admitted', 1, 7])
    await stores.accounts.updateAccount(id, { suspended: true })
    assert.deepEqual(say(await ask()), ['unknown-key'])
    await stores.accounts.updateAccount(id, { suspended: false })
    // Three scans on one credit: all of their requests count, and one scan is charged.
    assert.deepEqual((await Promise.all(times(3, () => ask()))).map(say), [
      ['admitted', 0, 6],
      ['out-of-credit', 0, 5],
      ['out-of-credit', 0, 4],
    ])
    assert.deepEqual(await stores.getBalance(id), { remaining: 0, ledger: 0, debits: 3, scans: 3 })
    await stores.accounts.grantCredits(id, 10, null)
    // Six scans on four requests.
    const answers = await Promise.all(times(6, () => ask()))
    assert.deepEqual([count(answers, 'admitted'), count(answers, 'rate-limited')], [4, 2])
    // Scans whose requests were counted before need credits alone.
    assert.deepEqual(say(await ask(false)), ['admitted', 5, 0])
    assert.deepEqual(await stores.getBalance(id), { remaining: 5, ledger: 5, debits: 8, scans: 8 })
    const debits = (await stores.accounts.listLedger(id, 4)).map(({ kind, amount, balance }) => [kind, amount, balance])
    assert.deepEqual(
      debits,
      [5, 6, 7, 8].map((balance) => ['debit', -1, balance]),
    )
    const [key] = await stores.keys.listKeys(id)
    await stores.keys.revokeKey(key?.id ?? '')
    assert.deepEqual(say(await ask()), ['unknown-key'])
    assert.deepEqual(say(await ask(false)), ['unknown-key'])
  })

  test('a rate window opens with its first request, and the next one starts from zero', async () => {
    const { digest } = await stores.register({ rate: { requests: 1, periodSeconds: 60 } })
    const ask = () => stores.gate.admit({ keyDigest: digest, countsRequest: true })
    assert.equal((await ask()).outcome, 'admitted')
    const limited = await ask()
    assert.ok(limited.outcome === 'rate-limited' && limited.retryAfterSeconds >= 59 && limited.retryAfterSeconds <= 60)
    await stores.ageWindows(59)
    const nearly = await ask()
    assert.ok(nearly.outcome === 'rate-limited' && nearly.retryAfterSeconds === 1)
    await stores.ageWindows(1)
    assert.equal((await ask()).outcome, 'admitted')
  })

  test('a key stops working the moment it is revoked', async () => {
    const { digest, id } = await stores.register()
    const [key] = await stores.keys.listKeys(id)
    await stores.keys.revokeKey(key?.id ?? '')
    assert.equal((await stores.gate.admit({ keyDigest: digest, countsRequest: true })).outcome, 'unknown-key')
  })

  test('keys of an account do not work while it is suspended or expired', async () => {
    const { digest, id } = await stores.register()
    const ask = async () => (await stores.gate.admit({ keyDigest: digest, countsRequest: true })).outcome
    await stores.accounts.updateAccount(id, { suspended: true })
    assert.equal(await ask(), 'unknown-key')
    await stores.accounts.updateAccount(id, { suspended: false, expiresAt: new Date(Date.now() - 1000) })
    assert.equal(await ask(), 'unknown-key')
    await stores.accounts.updateAccount(id, { expiresAt: null })
    assert.equal(await ask(), 'admitted')
  })
})
