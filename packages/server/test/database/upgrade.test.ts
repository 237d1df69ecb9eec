import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { after, before, describe, test } from 'node:test'
import type pg from 'pg'
import { pino } from 'pino'
import { makeAccountStore } from '../../src/database/account-store.ts'
import { migrate } from '../../src/database/migrate.ts'
import { readMigrations, toNumber } from '../../src/database/read-migrations.ts'
import { makeScanStore } from '../../src/database/scan-store.ts'
import { newScanId } from '../../src/domain/scans/scan.ts'
import { silentLog } from '../support/silent-log.ts'
import { openTestDatabase } from '../support/test-database.ts'
import { waitFor } from '../support/wait-for.ts'

/** The last migration of the release before, whose hot statements are in `previous/` as they were. */
const before0006 = '0005'
const readPrevious = (name: string) => readFileSync(new URL(`./previous/${name}.sql`, import.meta.url), 'utf8')

type TestDatabase = Awaited<ReturnType<typeof openTestDatabase>>

describe('an upgrade', () => {
  let database: TestDatabase
  let account: { id: string; digest: string }
  before(async () => {
    database = await openTestDatabase({ migrated: false })
    await database.pool.query('create table kysely_migration (name text primary key, timestamp text not null)')
    for (const { name, text } of readMigrations().filter((one) => toNumber(one.name) <= before0006)) {
      await database.pool.query(text)
      await database.pool.query('insert into kysely_migration values ($1, now()::text)', [name])
    }
    account = await makeAccount(database.pool)
    // Rows of a month, and more than a moment's reading.
    await database.pool.query(
      `insert into scans (id, account_id, kind, mode, region, status, content_length, content_type, completed_at, signals)
       select (lpad(to_hex((extract(epoch from now()) * 1000)::bigint - n * 50000::bigint), 12, '0') || '7'
         || substr(md5(n::text), 1, 19))::uuid, $1, 'malware', 'sync', 'test', 'clean', 1, 'text/plain', now(), '{}'
       from generate_series(1, 50000) as n`,
      [randomUUID()],
    )
  })
  after(() => database.drop())

  test('is done while the version before works on, and a long reader holds up nobody for long', async (t) => {
    const lines: { msg: string; migration?: string }[] = []
    const log = pino({ level: 'info' }, { write: (line: string) => lines.push(JSON.parse(line)) })
    const old = startPrevious(database.pool, account)
    const reader = await database.pool.connect()
    await waitFor(() => old.ids.length > 20)
    await reader.query('begin; select count(*) from scans')

    const migrating = migrate({ ...database, log })
    await waitFor(() => lines.some(({ msg }) => msg.includes('in use by others')))
    const meanwhile = old.ids.length
    await waitFor(() => old.ids.length > meanwhile + 3)
    await reader.query('commit')
    reader.release()
    assert.ok((await migrating).includes('0006-c-scan-partitions'))
    const migrated = old.ids.length
    await waitFor(() => old.ids.length > migrated + 20)
    await old.stop()

    t.diagnostic(`${old.ids.length} charges and jobs of the version before, the slowest took ${old.slowestMs()} ms`)
    assert.deepEqual(old.errors, [])
    assert.ok(old.slowestMs() < 5000)
    const scans = makeScanStore(database)
    for (const id of [old.ids[0], old.ids.at(-1)]) {
      assert.equal((await scans.findScan(account.id, 'malware', id ?? ''))?.status, 'clean')
    }
    assert.deepEqual(await makeAccountStore(database).listUnbalanced(), [])
    const { rows } = await database.pool.query<{ debits: number; scans: number; jobs: number }>(
      `select (select count(*)::int from credit_ledger where kind = 'debit') as debits,
         (select count(*)::int from scans where account_id = $1) as scans, (select count(*)::int from jobs) as jobs`,
      [account.id],
    )
    assert.deepEqual(rows, [{ debits: old.ids.length, scans: old.ids.length, jobs: 0 }])
  })

  test('moves no row: the table of before is a partition, and newer results get their own', async () => {
    const { rows } = await database.pool.query<{ name: string; bound: string }>(
      `select relname as name, pg_get_expr(relpartbound, oid) as bound from pg_class
       where relispartition and relkind = 'r' order by 1`,
    )
    assert.deepEqual(
      rows.map(({ name }) => name),
      ['scans_before', 'scans_default'],
    )
    assert.match(rows[0]?.bound ?? '', /^FOR VALUES FROM \(MINVALUE\) TO/)
    const { rows: own } = await database.pool.query(
      `select from pg_constraint where conrelid = 'scans_before'::regclass and conname = 'scans_before'`,
    )
    assert.equal(own.length, 0)
  })

  test('leaves the version before able to sweep and to start again', async () => {
    const { rowCount } = await database.pool.query(readPrevious('delete-settled'), [new Date(Date.now() + 60_000)])
    assert.equal(rowCount, 5000)
    const { rows } = await database.pool.query<{ name: string }>('select name from kysely_migration order by name')
    assert.equal(rows.at(-1)?.name.slice(0, 4), before0006)
    assert.deepEqual(await migrate({ ...database, log: silentLog }), [])
  })
})

/** As it was then, whatever the columns are that came later. */
async function makeAccount(pool: pg.Pool) {
  const [id, key] = [randomUUID(), randomUUID()]
  const digest = 'ab'.repeat(32)
  await pool.query(`insert into accounts (id, name, plan, webhook_secret) values ($1, 'old', 'unlimited', 'x')`, [id])
  await pool.query(
    `insert into balances (account_id, allocated, credit_limit, credit_remaining, period_anchor, period_start, period_end)
     values ($1, 100000, 100000, 100000, now(), now(), now() + interval '1 month')`,
    [id],
  )
  await pool.query(
    `insert into credit_ledger (account_id, kind, amount, balance) values ($1, 'opening', 100000, 100000)`,
    [id],
  )
  await pool.query(
    `insert into api_keys (id, account_id, name, prefix, digest) values ($1, $2, 'k', 'k', decode($3, 'hex'))`,
    [key, id, digest],
  )
  await pool.query('insert into rate_windows (key_id) values ($1)', [key])
  return { id, digest }
}

/** What nodes of the release before do all the time: charges, and jobs from their charge to their end. */
function startPrevious(pool: pg.Pool, account: { id: string; digest: string }) {
  const [ids, errors]: [string[], unknown[]] = [[], []]
  let slowest = 0
  let stopping = false
  const run = async (name: string, values: unknown[]) => {
    const start = performance.now()
    const result = await pool.query({ name: `previous-${name}`, text: readPrevious(name), values })
    slowest = Math.max(slowest, performance.now() - start)
    return result.rows
  }
  const loop = async (work: () => Promise<string>) => {
    while (!stopping)
      await work().then(
        (id) => ids.push(id),
        (error) => errors.push(error),
      )
  }
  const loops = [
    loop(async () => {
      const scan = { ...newScan(), mode: 'sync', status: 'clean', signals: [], completed_at: new Date() }
      await run('charge', [[account.digest], [1], JSON.stringify([{ i: 0, k: 1, nth: 1, ...scan }])])
      return scan.id
    }),
    loop(async () => {
      const scan = { ...newScan(), mode: 'async', is_job: true, queue: 'previous', url: 'https://a.test/' }
      await run('enqueue', [[account.digest], [1], JSON.stringify([{ i: 0, k: 1, nth: 1, ...scan }]), Buffer.alloc(0)])
      const [job] = await run('claim', [1, 30_000, randomUUID(), ['previous']])
      const end = { status: 'clean', signals: [], completed_at: new Date(), refunds: false, token: job?.lease_token }
      const ended = await run('settle', [JSON.stringify([{ ...scan, ...end, i: 0 }])])
      assert.equal(ended.length, 1)
      const [found] = await run('find-scan', [scan.id, account.id, 'malware'])
      assert.equal(found?.status, 'clean')
      return scan.id
    }),
  ]
  return {
    ids,
    errors,
    slowestMs: () => Math.round(slowest),
    async stop() {
      stopping = true
      await Promise.all(loops)
    },
  }
}

const newScan = () => ({
  ...{ id: newScanId(), kind: 'malware', region: 'test', status: 'pending', created_at: new Date() },
  ...{ content_length: 1, content_type: 'text/plain' },
})
