import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { after, before, describe, test } from 'node:test'
import { pino } from 'pino'
import { describeSchema } from '../../../../scripts/describe-schema.ts'
import {
  countMigrationsDone,
  listMigrations,
  listMigrationsDone,
  listPendingMigrations,
  type Migration,
  migrate,
  withMigrationLock,
} from '../../src/database/migrate.ts'
import { openDatabase } from '../../src/database/open-database.ts'
import { silentLog } from '../support/silent-log.ts'
import { openTestDatabase } from '../support/test-database.ts'
import { waitFor } from '../support/wait-for.ts'

type TestDatabase = Awaited<ReturnType<typeof openTestDatabase>>

describe('a migration', () => {
  let database: TestDatabase
  before(async () => {
    database = await openTestDatabase({ migrated: false })
  })
  after(() => database.drop())

  test('waits for the node that migrates, logs that, and is run once by four nodes', async () => {
    const nodes = await Promise.all(
      Array.from({ length: 4 }, () => openDatabase({ url: database.url, connections: 2, log: silentLog })),
    )
    try {
      const { log, lines } = newLog()
      let migrating: Promise<string[][]> | undefined
      await withMigrationLock({ ...database, log: silentLog }, async () => {
        migrating = Promise.all(nodes.map(({ pool }) => migrate({ pool, log })))
        await waitFor(
          () => lines.filter(({ msg }) => msg.startsWith('another node migrates the database')).length === 4,
        )
        assert.equal(await countMigrationsDone(database.pool), 0)
      })
      const ran = (await migrating) ?? []
      assert.deepEqual(
        ran.filter((names) => names.length > 0),
        [listMigrations()],
      )
      const progress = lines.filter(({ msg }) => msg === 'migrating the database')
      assert.equal(progress.at(-1)?.number, listMigrations().length)
      assert.deepEqual(await listPendingMigrations({ ...database, log: silentLog }), [])
      assert.deepEqual(await migrate({ ...database, log: silentLog }), [])
    } finally {
      await Promise.all(nodes.map(({ close }) => close()))
    }
  })

  test('makes the schema of schema.sql', async () => {
    const written = readFileSync(new URL('../../src/database/schema.sql', import.meta.url), 'utf8')
    assert.equal(await describeSchema(database.pool), written, 'run npm run schema')
  })

  test('of a newer version is refused, unless it serves this version', async () => {
    const newest = listMigrations().at(-1)?.slice(0, 4)
    await database.pool.query(`insert into migrations (name, serves) values ('9999-future', $1)`, [newest])
    const { log, lines } = newLog()
    assert.deepEqual(await migrate({ ...database, log }), [])
    assert.deepEqual(
      lines.map(({ msg, migrations }) => [msg, migrations]),
      [['the database schema is newer than this version and compatible; upgrade this node', ['9999-future']]],
    )
    await database.pool.query(`update migrations set serves = '9998' where name = '9999-future'`)
    await assert.rejects(migrate({ ...database, log: silentLog }), /migrated by a newer Assay \(it has 9999-future\)/)
  })
})

describe('migrations of later versions', () => {
  let database: TestDatabase
  before(async () => {
    database = await openTestDatabase({ migrated: false })
  })
  after(() => database.drop())

  const migrations: Migration[] = [
    { name: '0001-a', text: 'create table a (n integer)', serves: '0001' },
    { name: '0002-b', text: 'alter table a add column m integer; create table b ()', serves: '0001' },
    {
      name: '0003-c',
      text: 'create unique index concurrently a_n on a (n)',
      serves: '0001',
      concurrently: 'a_n',
    },
  ]
  const run = (last?: string, log = silentLog) => migrate({ ...database, log, migrations }, last)

  test('can stop at an earlier schema and go on from there', async () => {
    assert.deepEqual(await run('0001-a'), ['0001-a'])
    assert.deepEqual(await listPendingMigrations({ ...database, log: silentLog, migrations }), ['0002-b', '0003-c'])
  })

  test('do not hold up other statements while a long transaction uses their table', async () => {
    const { log, lines } = newLog()
    const reader = await database.pool.connect()
    await reader.query('begin; select from a')
    const migrating = run('0002-b', log)
    await waitFor(() => lines.some(({ msg }) => msg.startsWith('a migration waits for a table')))
    await database.pool.query('insert into a values (1), (1)')
    await reader.query('commit')
    reader.release()
    assert.deepEqual(await migrating, ['0002-b'])
  })

  test('that fail change nothing', async () => {
    const broken = { name: '0003-broken', text: 'create table c (); select 1 / 0', serves: '0001' }
    await assert.rejects(migrate({ ...database, log: silentLog, migrations: [broken] }, '0003-broken'), /by zero/)
    const { rows } = await database.pool.query(`select to_regclass('c') as c`)
    assert.deepEqual(rows, [{ c: null }])
    assert.deepEqual(await listMigrationsDone(database.pool), ['0001-a', '0002-b'])
  })

  test('build an index again that was left unfinished', async () => {
    await assert.rejects(run(), /could not create unique index/)
    await database.pool.query('delete from a')
    assert.deepEqual(await run(), ['0003-c'])
    const { rows } = await database.pool.query('select from pg_index where not indisvalid')
    assert.equal(rows.length, 0)
  })
})

function newLog() {
  const lines: { msg: string; migrations?: string[]; number?: number }[] = []
  return { lines, log: pino({ level: 'info' }, { write: (line: string) => lines.push(JSON.parse(line)) }) }
}
