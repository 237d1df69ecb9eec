import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { v7 as newId } from 'uuid'
import { makeDownloadCredentialStore } from '../../src/database/secret-stores.ts'
import {
  type DownloadTarget,
  readBucketTarget,
  readHostTarget,
  toTargetText,
} from '../../src/domain/downloads/target.ts'
import type { DownloadCredentialStore } from '../../src/domain/ports/secret-store.ts'
import { openTestStores } from '../support/test-stores.ts'

const secret = 'sw0rdfish-of-the-store'

describe('the store of download credentials', () => {
  let stores: Awaited<ReturnType<typeof openTestStores>>
  let credentials: DownloadCredentialStore
  let accountId: string
  let otherId: string
  before(async () => {
    stores = await openTestStores()
    credentials = makeDownloadCredentialStore({ pool: stores.database.pool, sealer: stores.sealer })
    accountId = (await stores.register()).id
    otherId = (await stores.register()).id
  })
  after(() => stores.close())

  const toTarget = (target: DownloadTarget | string) => {
    assert.ok(typeof target !== 'string')
    return target
  }
  const toHost = (host: string) => toTarget(readHostTarget(host))
  const put = (host: string, value = secret, account = accountId) =>
    credentials
      .put(account, {
        id: newId(),
        target: toHost(host),
        values: { kind: 'headers', headers: [{ name: 'cookie', value }] },
        createdBy: 'ada',
      })
      .then((outcome) => (typeof outcome === 'string' ? outcome : outcome.isReplaced ? 'replaced' : 'added'))
  const findId = async (host: string, account = accountId) =>
    (await credentials.list(account)).find(({ target }) => toTargetText(target) === `https://${host}`)?.id ?? ''

  test('keeps credentials of an account apart from those of others, and replaces one for the same hosts', async () => {
    assert.equal(await put('a.example.com'), 'added')
    // A download that has found the credential by now opens it by this id.
    const found = await findId('a.example.com')
    assert.equal(await put('A.example.com.', 'second'), 'replaced')
    assert.equal(await findId('a.example.com'), found)
    assert.equal(await put('a.example.com', 'of another', otherId), 'added')
    assert.equal(await put('a.example.com', secret, newId()), 'no-account')
    const [shown, ...more] = await credentials.show(accountId)
    assert.equal(more.length, 0)
    assert.deepEqual(shown?.values, [{ name: 'cookie', fingerprint: '16367aac' }])
    const id = await findId('a.example.com')
    assert.deepEqual(await credentials.open(accountId, id), {
      kind: 'headers',
      headers: [{ name: 'cookie', value: 'second' }],
    })
    assert.equal(await credentials.open(otherId, id), undefined)
    assert.equal(await credentials.remove(otherId, id), undefined)
    assert.equal(await credentials.remove(accountId, id), 'https://a.example.com')
    assert.equal(await credentials.open(accountId, id), undefined)
  })

  test('opens values for their account, target and region only, and keeps nothing of them in clear', async () => {
    const { pool } = stores.database
    const target = toTarget(readBucketTarget('data', 'eu-central-1', null))
    const values = { kind: 's3', accessKeyId: 'AKIASW0RDFISH', secretAccessKey: secret } as const
    await credentials.put(accountId, { id: newId(), target, values, createdBy: 'ada' })
    await put('b.example.com')
    const { rows } = await pool.query<{ row: string; sealed: Buffer }>(
      'select download_credentials::text as row, sealed from download_credentials',
    )
    for (const { row, sealed } of rows) {
      for (const clear of [secret, 'AKIASW0RDFISH']) assert.ok(!row.includes(clear) && !sealed.includes(clear))
    }
    const id = await findId('b.example.com')
    const change = (set: string) => pool.query(`update download_credentials set ${set} where id = $1`, [id])
    await change(`target = 'https://evil.example'`)
    assert.equal(await credentials.open(accountId, id), 'sealed')
    assert.equal((await credentials.show(accountId)).find((one) => one.id === id)?.values, null)
    await change(`target = 'https://b.example.com', account_id = '${otherId}'`)
    assert.equal(await credentials.open(otherId, id), 'sealed')
    await change(`account_id = '${accountId}'`)
    assert.equal(typeof (await credentials.open(accountId, id)), 'object')
    await pool.query('update download_credentials set region = $1 where region is not null', ['us-east-1'])
    const bucketId = (await credentials.list(accountId)).find((one) => one.target.kind === 's3')?.id ?? ''
    assert.equal(await credentials.open(accountId, bucketId), 'sealed')
  })

  test('shows and removes a target that is not valid any more, which matches nothing', async () => {
    const { id } = await stores.register()
    await put('d.example.com', secret, id)
    await put('e.example.com', secret, id)
    const text = 'update download_credentials set target = $2 where account_id = $1 and target = $3'
    await stores.database.pool.query(text, [id, 'gopher://d.example.com', 'https://d.example.com'])
    assert.deepEqual(
      (await credentials.list(id)).map(({ target }) => toTargetText(target)),
      ['https://e.example.com'],
    )
    const [shown, ...others] = await credentials.show(id)
    assert.deepEqual([shown?.target, shown?.values, others.length], ['gopher://d.example.com', null, 1])
    assert.equal(await credentials.remove(id, shown?.id ?? ''), 'gopher://d.example.com')
  })

  test('keeps at most 50 of an account, also when several are added at once', async () => {
    const { id } = await stores.register()
    const outcomes = await Promise.all(Array.from({ length: 52 }, (_, i) => put(`h${i}.example.com`, secret, id)))
    assert.equal(outcomes.filter((outcome) => outcome === 'added').length, 50)
    assert.equal(outcomes.filter((outcome) => outcome === 'full').length, 2)
    const [first] = await credentials.list(id)
    assert.ok(first?.target.kind === 'headers')
    assert.equal(await put(first.target.host, 'changed', id), 'replaced')
  })

  test('forgets the credentials with their account', async () => {
    const { pool } = stores.database
    const { id } = await stores.register()
    await put('c.example.com', secret, id)
    await pool.query('delete from credit_ledger where account_id = $1', [id])
    await pool.query('delete from accounts where id = $1', [id])
    assert.deepEqual(await credentials.list(id), [])
  })
})
