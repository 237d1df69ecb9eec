import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { describeSchema } from '../../../../scripts/describe-schema.ts'
import { listPendingMigrations, migrate } from '../../src/database/migrate.ts'
import { openDatabase } from '../../src/database/open-database.ts'
import { openTestDatabase, silentLog } from '../support/test-database.ts'

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

test('schema.sql is what the migrations make', async () => {
  const database = await openTestDatabase()
  try {
    const written = readFileSync(new URL('../../src/database/schema.sql', import.meta.url), 'utf8')
    assert.equal(await describeSchema(database.pool), written, 'run npm run schema')
  } finally {
    await database.drop()
  }
})
