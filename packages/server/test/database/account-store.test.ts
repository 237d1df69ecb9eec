import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { after, before, describe, test } from 'node:test'
import { newTestScan } from '../support/test-scan.ts'
import { openTestStores, type TestStores } from '../support/test-stores.ts'

describe('the account store', () => {
  let stores: TestStores
  before(async () => {
    stores = await openTestStores()
  })
  after(() => stores.close())

  test('the first account is created once, however many nodes try', async () => {
    const made = await Promise.all(
      Array.from({ length: 8 }, () => stores.registration.registerFirst({ name: 'first', plan: 'unlimited' })),
    )
    assert.equal(made.filter((one) => one !== undefined).length, 1)
    assert.equal((await stores.accounts.listAccounts()).length, 1)
  })

  test('an account has its plan’s credits and rate, or its own', async () => {
    const plain = await stores.register({ plan: 'free' })
    assert.equal(plain.account.balance.creditLimit, 1000)
    assert.deepEqual(plain.account.rate, { requests: 60, periodSeconds: 60 })
    const own = await stores.register({ plan: 'free', credits: 7, rate: { requests: 2, periodSeconds: 1 } })
    assert.equal(own.account.balance.creditRemaining, 7)
    assert.deepEqual(own.account.rate, { requests: 2, periodSeconds: 1 })
  })

  test('a smaller plan takes the difference from the balance, and never goes below zero', async () => {
    const { id, digest } = await stores.register({ plan: 'free', credits: 100 })
    for (let i = 0; i < 3; i++)
      await stores.gate.admit({ keyDigest: digest, countsRequest: false, scan: newTestScan() })
    await stores.accounts.grantCredits(id, 10, null)
    const smaller = await stores.accounts.updateAccount(id, { credits: 50 })
    assert.deepEqual([smaller?.balance.creditLimit, smaller?.balance.creditRemaining], [60, 57])
    const none = await stores.accounts.updateAccount(id, { credits: 0 })
    assert.deepEqual([none?.balance.creditLimit, none?.balance.creditRemaining], [10, 7])
    const back = await stores.accounts.updateAccount(id, { credits: null })
    assert.equal(back?.balance.creditLimit, 1010)
    assert.deepEqual(await stores.accounts.listUnbalanced(), [])
  })

  test('grants and scans at the same time lose nothing', async () => {
    const { id, digest } = await stores.register({ credits: 1000 })
    await Promise.all(
      Array.from({ length: 100 }, (_, i) =>
        i % 2 === 0
          ? stores.accounts.grantCredits(id, 3, null)
          : stores.gate.admit({ keyDigest: digest, countsRequest: true, scan: newTestScan() }),
      ),
    )
    assert.deepEqual(await stores.getBalance(id), { remaining: 1100, ledger: 1100, debits: 50, scans: 50 })
  })

  test('a balance that the ledger does not explain is found', async () => {
    const { id } = await stores.register({ credits: 10 })
    await stores.database.pool.query('update balances set credit_remaining = 4 where account_id = $1', [id])
    assert.deepEqual(await stores.accounts.listUnbalanced(), [{ id, balance: 4, ledger: 10 }])
    await stores.database.pool.query('update balances set credit_remaining = 10 where account_id = $1', [id])
  })

  test('keys are stored as digests, show when they were used, and stay revoked', async () => {
    const { id, digest, apiKey } = await stores.register()
    const { rows } = await stores.database.pool.query<{ row: string }>('select api_keys::text as row from api_keys')
    assert.ok(rows.every(({ row }) => !row.includes(apiKey)))
    const [before] = await stores.keys.listKeys(id)
    assert.equal(before?.lastUsedAt, null)
    await stores.gate.admit({ keyDigest: digest, countsRequest: true })
    const [used] = await stores.keys.listKeys(id)
    assert.ok(used?.lastUsedAt instanceof Date)
    assert.equal(await stores.keys.revokeKey(used.id), true)
    const [revoked] = await stores.keys.listKeys(id)
    await stores.keys.revokeKey(used.id)
    const [again] = await stores.keys.listKeys(id)
    assert.deepEqual(again?.revokedAt, revoked?.revokedAt)
    assert.equal(await stores.keys.revokeKey(randomUUID()), false)
  })

  test('a plan with accounts on it cannot be deleted', async () => {
    await stores.plans.savePlan({
      name: 'used',
      creditsPerPeriod: 1,
      rate: { requests: 1, periodSeconds: 1 },
      accountRate: null,
      maxKeys: null,
    })
    const { id } = await stores.register({ plan: 'used' })
    await assert.rejects(stores.plans.deletePlan('used'), /Accounts are on the plan used/)
    await stores.accounts.updateAccount(id, { plan: 'free' })
    assert.equal(await stores.plans.deletePlan('used'), true)
    assert.equal(await stores.plans.deletePlan('used'), false)
  })

  test('the previous webhook secret signs until it expires', async () => {
    const { id, webhookSecret } = await stores.register()
    const rotated = await stores.registration.rotateWebhookSecret(id)
    assert.deepEqual(await stores.accounts.listWebhookSecrets(id), [rotated?.webhookSecret, webhookSecret])
    const { previousUntil } = await stores.accounts.findWebhookRotation(id)
    assert.equal(previousUntil?.getTime(), rotated?.previousUntil.getTime())
    await stores.database.pool.query('update accounts set previous_webhook_secret_until = now() where id = $1', [id])
    assert.deepEqual(await stores.accounts.listWebhookSecrets(id), [rotated?.webhookSecret])
    assert.equal(await stores.registration.rotateWebhookSecret(randomUUID()), undefined)
  })

  test('webhook secrets are sealed, and do not open in another row or column', async () => {
    const { pool } = stores.database
    const { id, webhookSecret } = await stores.register()
    const { id: other } = await stores.register()
    await stores.registration.rotateWebhookSecret(id)
    const { rows } = await pool.query<{ row: string }>('select accounts::text as row from accounts where id = $1', [id])
    for (const form of ['utf8', 'hex', 'base64'] as const) {
      assert.ok(!rows[0]?.row.includes(Buffer.from(webhookSecret).toString(form).replace(/=+$/, '')), form)
    }
    const move = (to: string, from: string, source = id) =>
      pool.query(`update accounts set ${to} = source.${from} from accounts as source
        where accounts.id = '${other}' and source.id = '${source}'`)
    const refused = /was changed, or belongs elsewhere \(accounts\.webhook_secret\)/
    await move('webhook_secret', 'webhook_secret')
    await assert.rejects(stores.accounts.listWebhookSecrets(other), refused)
    // A new secret replaces one that does not open.
    const rotated = await stores.registration.rotateWebhookSecret(other)
    assert.deepEqual(await stores.accounts.listWebhookSecrets(other), [rotated?.webhookSecret])
    // An older secret of the same account is refused in the column of the current one.
    await pool.query(`update accounts set webhook_secret = previous_webhook_secret where id = '${id}'`)
    await assert.rejects(stores.accounts.listWebhookSecrets(id), refused)
  })
})
