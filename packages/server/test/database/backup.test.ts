import assert from 'node:assert/strict'
import { Readable } from 'node:stream'
import { buffer } from 'node:stream/consumers'
import { test } from 'node:test'
import { setTimeout as wait } from 'node:timers/promises'
import pg from 'pg'
import { dumpTables, loadTables } from '../../src/database/backup.ts'
import { openTestDatabase } from '../support/test-database.ts'
import { newTestScan } from '../support/test-scan.ts'
import { openTestStores } from '../support/test-stores.ts'

const dump = async (pool: Parameters<typeof dumpTables>[0]) =>
  (await dumpTables(pool, async (_table, rows) => ({ bytes: await buffer(rows) }))).tables

test('loaded tables equal the saved ones, and new rows get later numbers', async () => {
  const stores = await openTestStores()
  const copy = await openTestDatabase()
  try {
    for (let n = 0; n < 3; n++) await stores.register({ name: `back\\slash\n\ttab ${n}` })
    // A charged scan has a number of the ledger too, and it is the last one.
    const { digest } = await stores.register()
    await stores.gate.admit({ keyDigest: digest, countsRequest: false, scan: newTestScan() })
    const saved = await dump(stores.database.pool)
    const toBytes = new Map(saved.map(({ name, bytes }) => [name, bytes]))
    await loadTables(copy.pool, saved, ({ name }) => Readable.from([toBytes.get(name)]))
    assert.deepEqual(await dump(copy.pool), saved)

    const { rows } = await copy.pool.query(
      `insert into credit_ledger (account_id, kind, amount, balance)
       select account_id, 'grant', 1, 1 from credit_ledger limit 1
       returning id > (select max(id) from credit_ledger) and id > (select max(ledger_id) from scans) as later`,
    )
    assert.deepEqual(rows, [{ later: true }])
  } finally {
    await copy.drop()
    await stores.close()
  }
})

test('the time of a backup is that of its snapshot: what is committed before is in it, what comes later is not', async () => {
  const stores = await openTestStores()
  const { pool } = stores.database
  const readClock = async () => (await pool.query('select clock_timestamp() as now')).rows[0].now as Date
  try {
    const before = await stores.register({ name: 'before' })
    const acknowledgedAt = await readClock()
    const later: Date[] = []
    const { takenAt, tables } = await dumpTables(pool, async (_table, rows) => {
      if (later.length === 0) {
        await stores.register({ name: 'later' })
        later.push(await readClock())
      }
      return { text: (await buffer(rows)).toString() }
    })
    assert(takenAt >= acknowledgedAt && takenAt <= (later[0] ?? new Date(0)), takenAt.toISOString())
    const accounts = tables.find(({ name }) => name === 'accounts')?.text ?? ''
    assert.match(accounts, new RegExp(before.account.id))
    assert.doesNotMatch(accounts, /later/)
  } finally {
    await stores.close()
  }
})

test('a statement of a restore may take longer than those of the service', async () => {
  const copy = await openTestDatabase()
  const limitMs = 1500
  const limited = new pg.Pool({ connectionString: copy.url, query_timeout: limitMs })
  const holder = await copy.pool.connect()
  try {
    const saved = await dump(copy.pool)
    const toBytes = new Map(saved.map(({ name, bytes }) => [name, bytes]))
    await holder.query('begin; alter sequence credit_ledger_id_seq increment by 1')
    const loading = loadTables(limited, saved, ({ name }) => Readable.from([toBytes.get(name)]))
    const waiting = `select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'
      and query like '%setval%' and clock_timestamp() - query_start > $1 * interval '1 ms'`
    const isOver = loading.then(
      () => true,
      () => true,
    )
    while ((await copy.pool.query(waiting, [limitMs * 1.2])).rowCount === 0) {
      if (await Promise.race([isOver, wait(20)])) break
    }
    await holder.query('rollback')
    await loading
    assert.deepEqual(await dump(copy.pool), saved)
  } finally {
    holder.release()
    await limited.end()
    await copy.drop()
  }
})

test('a backup that cannot be loaded whole changes nothing', async () => {
  const stores = await openTestStores()
  const copy = await openTestDatabase()
  try {
    await stores.register()
    const saved = await dump(stores.database.pool)
    const before = await dump(copy.pool)
    const cut = ({ name }: { name: string }) => {
      const { bytes = Buffer.alloc(0) } = saved.find((table) => table.name === name) ?? {}
      return Readable.from([name === 'balances' ? bytes.subarray(0, -60) : bytes])
    }
    await assert.rejects(loadTables(copy.pool, saved, cut))
    assert.deepEqual(await dump(copy.pool), before)
  } finally {
    await copy.drop()
    await stores.close()
  }
})
