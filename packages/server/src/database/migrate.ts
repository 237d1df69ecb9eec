import { readdirSync, readFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Pool } from 'pg'
import { OperatorMistake } from '../domain/problem.ts'
import type { Logger } from '../runtime/logger.ts'
import { isDeadlock, isLockTimeout } from './database-error.ts'
import { findRow, inTransaction, listRows, type Queryable } from './query.ts'

export type Migration = {
  name: string
  text: string
  /** Number of the last migration that a version must know to work with the schema that this migration makes. */
  serves: string
  /** Name of the index that this migration builds with `create index concurrently`, outside a transaction. */
  concurrently?: string | undefined
}

type Deps = { pool: Pool; log: Logger; migrations?: Migration[] }

const folder = new URL('./migrations/', import.meta.url)
const migrationLock = 52_115_006
const lockPauseMs = 500
const logWaitEveryMs = 10_000
const lockDeadlineMs = 3_600_000

/** A statement that waits for a table lock holds up all later statements on that table, so it waits only briefly. */
const tableLockMs = 500
const longestPauseMs = 5000
const tableLockDeadlineMs = 15 * 60_000

/**
 * Brings the schema up to this version while other nodes use the database. Forward only. Nodes that start together wait
 * for each other, and one of them migrates. Returns the names of the migrations that ran. `last` stops after that
 * migration: a backup is restored into the schema that it was made with.
 */
export async function migrate(deps: Deps, last?: string): Promise<string[]> {
  const { migrations = readMigrations() } = deps
  const wanted = migrations.filter(({ name }) => last === undefined || name <= last)
  if (last === undefined) await requireServed(deps, wanted)
  if ((await listMissing(deps.pool, wanted)).length === 0) return []
  return withMigrationLock(deps, async () => {
    await deps.pool.query(createHistory)
    const missing = await listMissing(deps.pool, wanted)
    for (const [i, migration] of missing.entries()) {
      deps.log.info({ migration: migration.name, number: i + 1, of: missing.length }, 'migrating the database')
      await runMigration(deps, migration)
    }
    return missing.map(({ name }) => name)
  })
}

/** Migrations that the database lacks. Throws when the database is too new for this version. */
export async function listPendingMigrations(deps: Deps): Promise<string[]> {
  const { migrations = readMigrations() } = deps
  await requireServed(deps, migrations)
  return (await listMissing(deps.pool, migrations)).map(({ name }) => name)
}

/** The migrations of this version, in the order in which they run. */
export const listMigrations = (): string[] => readMigrations().map(({ name }) => name)

export const listMigrationsDone = async (pool: Pool): Promise<string[]> =>
  (await listDone(pool)).map(({ name }) => name)

export const countMigrationsDone = async (pool: Pool): Promise<number> => (await listDone(pool)).length

function readMigrations(): Migration[] {
  const files = readdirSync(folder).filter((file) => file.endsWith('.sql'))
  return files.sort().map((file) => {
    const text = readFileSync(new URL(file, folder), 'utf8')
    const name = file.slice(0, -'.sql'.length)
    const findHeader = (word: string) => new RegExp(`^-- ${word}: (\\w+)$`, 'm').exec(text)?.[1]
    // Without the header no earlier version is served.
    return { name, text, serves: findHeader('serves') ?? toNumber(name), concurrently: findHeader('concurrently') }
  })
}

const toNumber = (name: string) => name.slice(0, 4)

const createHistory = `
create table if not exists migrations (
  name text primary key,
  serves text not null,
  ran_at timestamptz not null default now()
)`

async function listDone(pool: Pool): Promise<{ name: string; serves: string }[]> {
  const found = await findRow<{ exists: boolean }>(pool, `select to_regclass('migrations') is not null as exists`)
  return found?.exists === true ? listRows(pool, 'select name, serves from migrations order by name') : []
}

async function listMissing(pool: Pool, migrations: Migration[]): Promise<Migration[]> {
  const done = new Set(await listMigrationsDone(pool))
  return migrations.filter(({ name }) => !done.has(name))
}

/**
 * While nodes are upgraded one by one, nodes of the previous version find a schema that is newer than they are. They
 * work with it if every unknown migration says that it serves them, and refuse to start otherwise.
 */
async function requireServed({ pool, log }: Deps, migrations: Migration[]) {
  const ownNames = new Set(migrations.map(({ name }) => name))
  const newest = toNumber(migrations.at(-1)?.name ?? '0000')
  const unknown = (await listDone(pool)).filter(({ name }) => !ownNames.has(name))
  if (unknown.length === 0) return
  const names = unknown.map(({ name }) => name)
  if (unknown.some(({ serves }) => serves > newest)) {
    throw new OperatorMistake(
      `The database was migrated by a newer Assay (it has ${names.join(', ')}). Start that version, or a newer one.`,
    )
  }
  log.warn({ migrations: names }, 'the database schema is newer than this version and compatible; upgrade this node')
}

/**
 * Runs `work` on one node; the others wait and log that they do. The lock is held by a transaction on a connection of
 * its own, because a migration needs several transactions or none. That transaction has no snapshot, so no index build
 * waits for it.
 */
export async function withMigrationLock<Result>(
  { pool, log }: Pick<Deps, 'pool' | 'log'>,
  work: () => Promise<Result>,
): Promise<Result> {
  const start = performance.now()
  const settings = ['idle_in_transaction_session_timeout = 0']
  for (let nextLogMs = 0; ; ) {
    const tryOnce = async (client: Queryable) => ((await hasLock(client)) ? { result: await work() } : undefined)
    const done = await inTransaction(pool, tryOnce, { settings })
    if (done !== undefined) return done.result
    const waitedMs = performance.now() - start
    if (waitedMs > lockDeadlineMs) {
      throw new OperatorMistake(
        'Another node has been migrating the database for an hour. Check its log, then start this node again.',
      )
    }
    if (waitedMs >= nextLogMs) {
      nextLogMs = waitedMs + logWaitEveryMs
      log.info({ seconds: Math.round(waitedMs / 1000) }, 'another node migrates the database; waiting for it')
    }
    await sleep(lockPauseMs)
  }
}

/**
 * The statement is sent without parameters: one with parameters keeps its snapshot, and `create index concurrently`
 * waits for it.
 */
async function hasLock(client: Queryable): Promise<boolean> {
  const { rows } = await client.query<{ granted: boolean }>(
    `select pg_try_advisory_xact_lock(${migrationLock}) as granted`,
  )
  return rows[0]?.granted === true
}

/** The schema and its record change in one transaction, except where an index is built. */
async function runMigration({ pool, log }: Deps, migration: Migration) {
  if (migration.concurrently !== undefined) return buildIndex(pool, migration, migration.concurrently)
  const start = performance.now()
  const settings = [`lock_timeout = ${tableLockMs}`, 'statement_timeout = 0']
  for (let pauseMs = 250; ; pauseMs = Math.min(2 * pauseMs, longestPauseMs)) {
    try {
      return await inTransaction(pool, (client) => client.query(migration.text).then(() => record(client, migration)), {
        settings,
      })
    } catch (error) {
      if (!isLockTimeout(error) && !isDeadlock(error)) throw error
      if (performance.now() - start > tableLockDeadlineMs) throw newLockMistake(migration, error)
      log.warn({ migration: migration.name, pauseMs }, 'a migration waits for a table that is in use; trying again')
    }
    await sleep(pauseMs)
  }
}

/** An interrupted build leaves an invalid index behind, which keeps its name: it is dropped and built again. */
async function buildIndex(pool: Pool, migration: Migration, index: string) {
  const client = await pool.connect()
  try {
    await client.query(`set lock_timeout = ${tableLockDeadlineMs}; set statement_timeout = 0`)
    const found = await findRow<{ valid: boolean }>(
      client,
      'select indisvalid as valid from pg_index where indexrelid = to_regclass($1)',
      [index],
    )
    if (found?.valid === false) await client.query(`drop index concurrently ${client.escapeIdentifier(index)}`)
    if (found?.valid !== true) await client.query(migration.text)
    await record(client, migration)
  } finally {
    // The connection has other time limits now, so it does not return to the pool.
    client.release(true)
  }
}

const record = (client: Queryable, { name, serves }: Migration) =>
  client.query('insert into migrations (name, serves) values ($1, $2)', [name, serves])

const newLockMistake = ({ name }: Migration, cause: unknown) =>
  new OperatorMistake(
    `The migration ${name} did not get its lock within ${tableLockDeadlineMs / 60_000} minutes: a long transaction ` +
      'holds a table (see pg_stat_activity). End it, then start this version again.',
    { cause },
  )
