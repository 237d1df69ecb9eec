import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import type { NewJob } from '../../src/domain/ports/job-store.ts'
import type { NewScan } from '../../src/domain/scans/scan.ts'
import { newTestScan } from '../support/test-scan.ts'
import { ago, makeDayIn, newIdAt } from './test-days.ts'
import { openTestJobs, type TestJobs, testQueue, toFailure } from './test-jobs.ts'

describe('the ledger', () => {
  let stores: TestJobs
  before(async () => {
    stores = await openTestJobs()
  })
  after(() => stores.close())

  const charge = async (digest: string, at: Date, job?: NewJob) => {
    const result: Partial<NewScan> =
      job === undefined ? { status: 'clean', signals: [], completedAt: at } : { mode: 'async' }
    const scan = newTestScan({ id: newIdAt(at), createdAt: at, ...result })
    await stores.gate.admit({ keyDigest: digest, countsRequest: false, scan, ...(job === undefined ? {} : { job }) })
    return scan.id
  }

  test('keeps old debits by day, and still sums to the balance', async () => {
    const { id, digest } = await stores.register({ credits: 100 })
    const { id: other, digest: otherDigest } = await stores.register({ credits: 100 })
    const [first, second] = [new Date('2026-01-05T03:00:00Z'), new Date('2026-01-06T23:59:00Z')]
    // The scans of the first day lie in its partition, those of the second in the default partition.
    await makeDayIn(stores, first)
    for (const at of [first, first, second]) await charge(digest, at)
    await charge(otherDigest, first)
    const recent = await charge(digest, new Date())
    await stores.scans.deleteCompleted(30)
    assert.equal(await stores.count('scans', id), 1)
    const list = async (account: string) =>
      (await stores.accounts.listLedger(account, 100)).map(({ kind, amount, balance, note, scanId, at }) => [
        kind,
        amount,
        balance,
        note,
        scanId,
        kind === 'opening' || scanId !== null ? undefined : at.toISOString(),
      ])
    assert.deepEqual(await list(id), [
      ['debit', -1, 96, null, recent, undefined],
      ['debit', -1, 97, '1 scans', null, '2026-01-06T00:00:00.000Z'],
      ['debit', -2, 98, '2 scans', null, '2026-01-05T00:00:00.000Z'],
      ['opening', 100, 100, null, null, undefined],
    ])
    assert.equal((await list(other)).length, 2)

    await charge(digest, new Date('2026-01-05T20:00:00Z'))
    assert.equal(await stores.scans.deleteCompleted(30), 1)
    assert.equal(await stores.scans.deleteCompleted(30), 0)
    assert.deepEqual(
      (await list(id)).filter(([, amount]) => amount === -3),
      [['debit', -3, 95, '3 scans', null, '2026-01-05T00:00:00.000Z']],
    )
    assert.deepEqual(await stores.accounts.listUnbalanced(), [])
  })

  test('keeps the number and the balance of the last debit of a day, in whichever order its scans are deleted', async () => {
    const { id, digest } = await stores.register({ credits: 10 })
    const at = new Date('2026-01-08T03:00:00Z')
    const ids = [await charge(digest, at), await charge(digest, at), await charge(digest, at)]
    const { rows } = await stores.pool.query<{ last: string }>(
      'select max(ledger_id) as last from scans where account_id = $1',
      [id],
    )
    // A result that was completed later is deleted later.
    for (const kept of [[0, 2], [0], []]) {
      const ages = ids.map((_, n) => (kept.includes(n) ? 1 : 100))
      await stores.pool.query(
        `update scans set completed_at = now() - age * interval '1 day'
         from unnest($1::uuid[], $2::integer[]) as change (scan_id, age) where scans.id = scan_id`,
        [ids, ages],
      )
      await stores.scans.deleteCompleted(30)
    }
    const [entry] = await stores.accounts.listLedger(id, 1)
    assert.deepEqual([String(entry?.id), entry?.amount, entry?.balance, entry?.note], [rows[0]?.last, -3, 7, '3 scans'])
    assert.deepEqual(await stores.accounts.listUnbalanced(), [])
  })

  test('keeps the debit of a job that can still be refunded, and then refunds it once', async () => {
    const { id, digest } = await stores.register({ credits: 10 })
    const job: NewJob = { queue: testQueue, source: { at: 'url', url: 'https://a.test/' }, callbackUrl: null }
    const scanId = await charge(digest, ago(90), job)
    assert.equal(await stores.scans.deleteCompleted(30), 0)
    const [claimed] = await stores.jobs.claim(1, 30_000)
    assert.ok(claimed?.lease.scanId === scanId)
    assert.equal(await stores.jobs.complete(claimed.lease, toFailure(claimed)), true)
    assert.equal(await stores.jobs.complete(claimed.lease, toFailure(claimed)), false)
    await stores.pool.query('update scans set completed_at = created_at where id = $1', [scanId])
    await stores.pool.query(`update credit_ledger set at = at - interval '90 days' where scan_id = $1`, [scanId])
    assert.equal(await stores.scans.deleteCompleted(30), 1)
    assert.equal(await stores.scans.foldLedger(30), 1)
    assert.equal((await stores.getBalance(id))?.ledger, 10)
    assert.deepEqual(await stores.accounts.listUnbalanced(), [])
  })

  test('is folded in pieces, by nodes that do not know of each other', async () => {
    const { id } = await stores.register({ credits: 20_000 })
    await stores.pool.query(
      `with made as (
         insert into credit_ledger (account_id, kind, amount, balance, scan_id, at)
         select $1, 'refund', 1, 20000 + n, (lpad(to_hex(1700000000000 + n), 12, '0') || repeat('0', 20))::uuid,
           to_timestamp(1700000000 + n / 1000.0)
         from generate_series(1, 12001) as n returning 1
       )
       update balances set credit_limit = 20000 + 12001, credit_remaining = 20000 + 12001 where account_id = $1`,
      [id],
    )
    const folded = await Promise.all(Array.from({ length: 3 }, () => stores.scans.foldLedger(30)))
    assert.equal(
      folded.reduce((sum, n) => sum + n),
      12_001,
    )
    assert.equal((await stores.accounts.listLedger(id, 10)).length, 2)
    assert.deepEqual(await stores.accounts.listUnbalanced(), [])
  })
})
