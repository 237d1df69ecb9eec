import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { after, before, describe, test } from 'node:test'
import { newTestScan, openTestOffice, type TestOffice } from '../support/test-office.ts'

describe('the account store', () => {
  let office: TestOffice
  before(async () => {
    office = await openTestOffice()
  })
  after(() => office.close())

  test('the first account is created once, however many nodes try', async () => {
    const made = await Promise.all(
      Array.from({ length: 8 }, () => office.registration.registerFirst({ name: 'first', plan: 'unlimited' })),
    )
    assert.equal(made.filter((one) => one !== undefined).length, 1)
    assert.equal((await office.accounts.listAccounts()).length, 1)
  })

  test('an account has its plan’s credits and rate, or its own', async () => {
    const plain = await office.register({ plan: 'free' })
    assert.equal(plain.account.balance.creditLimit, 1000)
    assert.deepEqual(plain.account.rate, { requests: 60, periodSeconds: 60 })
    const own = await office.register({ plan: 'free', credits: 7, rate: { requests: 2, periodSeconds: 1 } })
    assert.equal(own.account.balance.creditRemaining, 7)
    assert.deepEqual(own.account.rate, { requests: 2, periodSeconds: 1 })
  })

  test('a smaller plan takes what is too much and never goes below zero', async () => {
    const { id, digest } = await office.register({ plan: 'free', credits: 100 })
    for (let i = 0; i < 3; i++) await office.gate.ask({ keyDigest: digest, takesRequest: false, scan: newTestScan() })
    await office.accounts.grantCredits(id, 10, null)
    const smaller = await office.accounts.updateAccount(id, { credits: 50 })
    assert.deepEqual([smaller?.balance.creditLimit, smaller?.balance.creditRemaining], [60, 57])
    const none = await office.accounts.updateAccount(id, { credits: 0 })
    assert.deepEqual([none?.balance.creditLimit, none?.balance.creditRemaining], [10, 7])
    const back = await office.accounts.updateAccount(id, { credits: null })
    assert.equal(back?.balance.creditLimit, 1010)
    assert.deepEqual(await office.accounts.listUnbalanced(), [])
  })

  test('grants and scans at the same time lose nothing', async () => {
    const { id, digest } = await office.register({ credits: 1000 })
    await Promise.all(
      Array.from({ length: 100 }, (_, i) =>
        i % 2 === 0
          ? office.accounts.grantCredits(id, 3, null)
          : office.gate.ask({ keyDigest: digest, takesRequest: true, scan: newTestScan() }),
      ),
    )
    assert.deepEqual(await office.getBalance(id), { remaining: 1100, ledger: 1100, debits: 50, scans: 50 })
  })

  test('a balance that the ledger does not explain is found', async () => {
    const { id } = await office.register({ credits: 10 })
    await office.database.pool.query('update balances set credit_remaining = 4 where account_id = $1', [id])
    assert.deepEqual(await office.accounts.listUnbalanced(), [{ id, balance: 4, ledger: 10 }])
    await office.database.pool.query('update balances set credit_remaining = 10 where account_id = $1', [id])
  })

  test('keys are stored as digests, show when they were used, and stay revoked', async () => {
    const { id, digest, apiKey } = await office.register()
    const { rows } = await office.database.pool.query<{ row: string }>('select api_keys::text as row from api_keys')
    assert.ok(rows.every(({ row }) => !row.includes(apiKey)))
    const [before] = await office.keys.listKeys(id)
    assert.equal(before?.lastUsedAt, null)
    await office.gate.ask({ keyDigest: digest, takesRequest: true })
    const [used] = await office.keys.listKeys(id)
    assert.ok(used?.lastUsedAt instanceof Date)
    assert.equal(await office.keys.revokeKey(used.id), true)
    const [revoked] = await office.keys.listKeys(id)
    await office.keys.revokeKey(used.id)
    const [again] = await office.keys.listKeys(id)
    assert.deepEqual(again?.revokedAt, revoked?.revokedAt)
    assert.equal(await office.keys.revokeKey(randomUUID()), false)
  })

  test('a plan with accounts on it cannot be deleted', async () => {
    await office.plans.savePlan({ name: 'used', creditsPerPeriod: 1, rate: { requests: 1, periodSeconds: 1 } })
    const { id } = await office.register({ plan: 'used' })
    await assert.rejects(office.plans.deletePlan('used'), /Accounts are on the plan used/)
    await office.accounts.updateAccount(id, { plan: 'free' })
    assert.equal(await office.plans.deletePlan('used'), true)
    assert.equal(await office.plans.deletePlan('used'), false)
  })

  test('the webhook secret before a rotation is kept until its time', async () => {
    const { id, webhookSecret } = await office.register()
    const rotated = await office.registration.rotateWebhookSecret(id)
    const { rows } = await office.database.pool.query(
      'select webhook_secret, previous_webhook_secret, previous_webhook_secret_until as until from accounts where id = $1',
      [id],
    )
    assert.equal(rows[0]?.webhook_secret, rotated?.webhookSecret)
    assert.equal(rows[0]?.previous_webhook_secret, webhookSecret)
    assert.equal(rows[0]?.until.getTime(), rotated?.previousUntil.getTime())
    assert.equal(await office.registration.rotateWebhookSecret(randomUUID()), undefined)
  })
})
