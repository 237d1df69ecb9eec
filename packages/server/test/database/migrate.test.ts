import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { pino } from 'pino'
import { describeSchema } from '../../../../scripts/describe-schema.ts'
import { countMigrationsDone, listPendingMigrations, migrate } from '../../src/database/migrate.ts'
import { withMigrationLock } from '../../src/database/migration-lock.ts'
import { openDatabase } from '../../src/database/open-database.ts'
import { readMigrations, toNumber } from '../../src/database/read-migrations.ts'
import { silentLog } from '../support/silent-log.ts'
import { openTestDatabase } from '../support/test-database.ts'
import { waitFor } from '../support/wait-for.ts'

test('nodes that start together migrate once', async () => {
  const database = await openTestDatabase({ migrated: false })
  const nodes = await Promise.all(
    Array.from({ length: 4 }, () => openDatabase({ url: database.url, connections: 2, log: silentLog })),
  )
  try {
    const ran = await Promise.all(nodes.map(({ pool }) => migrate({ pool, log: silentLog })))
    assert.equal(ran.filter((names) => names.length > 0).length, 1)
    assert.deepEqual(await listPendingMigrations({ ...database, log: silentLog }), [])
    assert.deepEqual(await migrate({ ...database, log: silentLog }), [])
  } finally {
    await Promise.all(nodes.map(({ close }) => close()))
    await database.drop()
  }
})

test('a database of a newer version is refused and left alone', async () => {
  const database = await openTestDatabase()
  try {
    await database.pool.query(`insert into migrations (name, serves) values ('9999-future', '9998')`)
    await assert.rejects(migrate({ ...database, log: silentLog }), /migrated by a newer Assay \(it has 9999-future\)/)
  } finally {
    await database.drop()
  }
})

test('a newer database that works with this version is used, and that is said', async () => {
  const database = await openTestDatabase()
  try {
    const newest = toNumber(readMigrations().at(-1)?.name ?? '')
    await database.pool.query(`insert into migrations (name, serves) values ('9999-future', $1)`, [newest])
    const { log, lines } = newLog()
    assert.deepEqual(await migrate({ ...database, log }), [])
    assert.deepEqual(
      lines.map(({ msg, migrations }) => [msg, migrations]),
      [['the database is newer than this version and works with it; upgrade this one too', ['9999-future']]],
    )
  } finally {
    await database.drop()
  }
})

test('a node that finds another one migrating waits for it and says so', async () => {
  const database = await openTestDatabase({ migrated: false })
  try {
    const { log, lines } = newLog()
    let waiting: Promise<string[]> | undefined
    await withMigrationLock({ ...database, log: silentLog }, async () => {
      waiting = migrate({ ...database, log })
      await waitFor(() => lines.some(({ msg }) => msg.startsWith('another node migrates the database')))
      assert.equal(await countMigrationsDone(database.pool), 0)
    })
    assert.equal((await waiting)?.length, readMigrations().length)
    const progress = lines.filter(({ msg }) => msg === 'migrating the database')
    assert.deepEqual(progress.at(-1)?.number, readMigrations().length)
  } finally {
    await database.drop()
  }
})

test('an index that was left unfinished is built again', async () => {
  const database = await openTestDatabase()
  try {
    await database.pool.query(`delete from migrations where name = '0006-d-ledger-days'`)
    await database.pool.query('drop index credit_ledger_days')
    for (let i = 0; i < 2; i++) {
      await database.pool.query(
        `insert into credit_ledger (account_id, kind, amount, balance, at) values ($1, 'debit', -1, 1, '2026-01-01')`,
        ['01a1ddc9-0f2d-744c-82c9-ec64fd80141d'],
      )
    }
    await assert.rejects(migrate({ ...database, log: silentLog }), /could not create unique index/)
    await database.pool.query('delete from credit_ledger')
    assert.deepEqual(await migrate({ ...database, log: silentLog }), ['0006-d-ledger-days'])
    const { rows } = await database.pool.query('select from pg_index where not indisvalid')
    assert.equal(rows.length, 0)
  } finally {
    await database.drop()
  }
})

test('schema.sql is what the migrations make', async () => {
  const database = await openTestDatabase()
  try {
    const written = readFileSync(new URL('../../src/database/schema.sql', import.meta.url), 'utf8')
    assert.equal(await describeSchema(database.pool), written, 'run npm run schema')
  } finally {
    await database.drop()
  }
})

function newLog() {
  const lines: { msg: string; migrations?: string[]; number?: number }[] = []
  return { lines, log: pino({ level: 'info' }, { write: (line: string) => lines.push(JSON.parse(line)) }) }
}
