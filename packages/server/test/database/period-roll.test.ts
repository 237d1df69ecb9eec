import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { makeAdmissionGate } from '../../src/database/admission-gate.ts'
import { newTestScan } from '../support/test-scan.ts'
import { openTestStores, type TestStores } from '../support/test-stores.ts'

describe('a billing period that is over', () => {
  let stores: TestStores
  before(async () => {
    stores = await openTestStores()
  })
  after(() => stores.close())

  const listRolls = async (id: string) => (await stores.accounts.listLedger(id, 1000)).filter((e) => e.kind === 'roll')

  test('rolls once for any number of concurrent requests, and none is lost or counted twice', async () => {
    const { digest, id } = await stores.register({ credits: 20, rate: { requests: 60, periodSeconds: 60 } })
    await stores.gate.admit({ keyDigest: digest, countsRequest: false, scan: newTestScan() })
    await stores.age(id, 40)
    const gates = [stores.gate, makeAdmissionGate(stores.database)]
    const answers = await Promise.all(
      Array.from({ length: 50 }, (_, i) =>
        gates[i % 2]?.admit({ keyDigest: digest, countsRequest: true, scan: newTestScan() }),
      ),
    )
    assert.equal(answers.filter((a) => a?.outcome === 'admitted').length, 20)
    assert.equal(answers.filter((a) => a?.outcome === 'out-of-credit').length, 30)
    assert.equal((await listRolls(id)).length, 1)
    assert.deepEqual(await stores.getBalance(id), { remaining: 0, ledger: 0, debits: 21, scans: 21 })
    const after = await stores.gate.admit({ keyDigest: digest, countsRequest: true })
    assert.ok(after.outcome === 'admitted' && after.caller.requestsRemaining === 9)
  })

  test('ends to the millisecond, and the new one contains the current time however long the account was idle', async () => {
    const { id } = await stores.register({ credits: 5 })
    await stores.age(id, 400)
    const account = await stores.accounts.findAccount(id)
    const { start, end } = account?.balance.period ?? { start: new Date(0), end: new Date(0) }
    assert.ok(start <= new Date() && new Date() < end)
    assert.equal((await listRolls(id)).length, 1)
  })

  test('ends unused credits and grants, and starts with the credits of the new plan', async () => {
    const { id } = await stores.register({ plan: 'free' })
    await stores.accounts.grantCredits(id, 500, 'add-on')
    await stores.plans.savePlan({
      name: 'bigger',
      creditsPerPeriod: 2000,
      rate: { requests: 1, periodSeconds: 1 },
      accountRate: null,
      maxKeys: null,
    })
    await stores.accounts.updateAccount(id, { plan: 'bigger' })
    const before = await stores.accounts.findAccount(id)
    assert.deepEqual([before?.balance.creditLimit, before?.balance.creditRemaining], [2500, 2500])
    await stores.age(id, 31)
    const after = await stores.accounts.findAccount(id)
    assert.deepEqual([after?.balance.creditLimit, after?.balance.creditRemaining], [2000, 2000])
    const kinds = (await stores.accounts.listLedger(id, 10)).map(({ kind, amount }) => `${kind} ${amount}`)
    assert.deepEqual(kinds, ['roll -500', 'adjust 1000', 'grant 500', 'opening 1000'])
    assert.deepEqual(await stores.accounts.listUnbalanced(), [])
  })
})
