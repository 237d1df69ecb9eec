import assert from 'node:assert/strict'
import childProcess from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { syncBuiltinESMExports } from 'node:module'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import pg from 'pg'
import { copyPreparedDatabase } from '../../../../acceptance/support/prepared-database.ts'
import { waitUntil } from '../../../../acceptance/support/wait-until.ts'
import { openStores } from '../../src/compose/stores.ts'
import { loadConfig } from '../../src/config/load-config.ts'
import { openEmbedded } from '../../src/database/embedded/open-embedded.ts'
import { OperatorMistake } from '../../src/domain/problem.ts'
import { silentLog } from '../support/silent-log.ts'
import { openTestDatabase } from '../support/test-database.ts'

const isMistake = (expected: RegExp) => (error: unknown) => {
  assert(error instanceof OperatorMistake, String(error))
  assert.match(error.message, expected)
  return true
}

/** Holds a lock that the start of a service waits for. */
async function holdMigrations(url: string) {
  const connect = async () => {
    const client = new pg.Client(url)
    client.on('error', () => {})
    await client.connect()
    return client
  }
  const holder = await connect()
  await holder.query('create table if not exists migrations (name text primary key, serves text not null)')
  await holder.query('begin; lock table migrations')
  // Another connection, because a transaction sees the activity of its beginning.
  const observer = await connect()
  const findWaiter = async (): Promise<number | undefined> => {
    const { rows } = await observer.query(
      `select pid from pg_stat_activity where wait_event_type = 'Lock' and application_name = 'assay'
         and datname = current_database()`,
    )
    return rows[0]?.pid
  }
  return {
    async waitForStart() {
      await waitUntil('the start to wait', async () => (await findWaiter()) !== undefined)
    },
    cut: async () => observer.query('select pg_terminate_backend($1)', [await findWaiter()]),
    async close() {
      await Promise.all([holder.end(), observer.end()])
    },
  }
}

test('a start whose database connection is cut says so in a sentence', async (t) => {
  const database = await openTestDatabase({ migrated: false })
  const dataDir = mkdtempSync(join(tmpdir(), 'assay-outage-'))
  const held = await holdMigrations(database.url)
  t.after(async () => {
    await held.close()
    await database.drop()
    rmSync(dataDir, { recursive: true })
  })
  const { config } = loadConfig({ ASSAY_DATABASE_URL: database.url, ASSAY_DATA_DIR: dataDir })
  const starting = assert.rejects(
    openStores(config, 'service', silentLog),
    isMistake(
      /^The connection to the database was lost: \S.*\. Make sure that PostgreSQL runs and .*, then try again\./,
    ),
  )
  await held.waitForStart()
  await held.cut()
  await starting
})

test('a start whose embedded database is killed says so in a sentence', async (t) => {
  const dir = mkdtempSync(join(tmpdir(), 'assay-outage-'))
  const dataDir = join(dir, 'data')
  copyPreparedDatabase(dataDir)
  const embedded = await openEmbedded({ dataDir, as: 'command', log: silentLog })
  const held = await holdMigrations(embedded.url)
  t.after(async () => {
    await embedded.close()
    rmSync(dir, { recursive: true })
  })
  const { config } = loadConfig({ ASSAY_DATA_DIR: dataDir, ASSAY_DATABASE_URL: '' })
  const starting = assert.rejects(
    openStores(config, 'service', silentLog),
    isMistake(/^The connection to the database was lost: \S.*\. Read its log, \S+\/postgres\.log, then try again\./),
  )
  await held.waitForStart()
  const [pid = ''] = readFileSync(join(dataDir, 'postgres', 'cluster', 'postmaster.pid'), 'utf8').split('\n')
  process.kill(Number(pid), 'SIGKILL')
  await starting
})

/** Lets each program that is spawned start a third of a second late, and returns the number of programs so far. */
function delayPrograms(t: TestContext): () => number {
  const { spawn } = childProcess
  const late = ['-c', 'sleep 0.3; exec "$0" "$@"']
  const mocked = t.mock.method(childProcess, 'spawn', (command: string, args: string[], options: object) =>
    spawn('/bin/sh', [...late, command, ...args], options),
  )
  syncBuiltinESMExports()
  t.after(() => {
    t.mock.restoreAll()
    syncBuiltinESMExports()
  })
  return () => mocked.mock.callCount()
}

test('a server of the embedded database that starts slowly is waited for', async (t) => {
  const dir = mkdtempSync(join(tmpdir(), 'assay-outage-'))
  const dataDir = join(dir, 'data')
  copyPreparedDatabase(dataDir)
  const countServers = delayPrograms(t)
  const embedded = await openEmbedded({ dataDir, as: 'command', log: silentLog })
  t.after(async () => {
    await embedded.close()
    rmSync(dir, { recursive: true })
  })
  assert.equal(countServers(), 1)
})
