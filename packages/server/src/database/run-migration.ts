import { setTimeout as sleep } from 'node:timers/promises'
import type { Pool, PoolClient } from 'pg'
import { OperatorMistake } from '../domain/problem.ts'
import type { Logger } from '../runtime/logger.ts'
import { recordMigration } from './migration-history.ts'
import type { Migration } from './read-migrations.ts'

/** Whoever waits for a lock on a table makes everybody wait who comes later. So it waits no longer than this at a time. */
const lockMs = 500
const longestPauseMs = 5000
const deadlineMs = 15 * 60_000

/** With the record that it was run; both or neither, unless it builds an index. */
export async function runMigration(deps: { pool: Pool; log: Logger }, migration: Migration): Promise<void> {
  const client = await deps.pool.connect()
  try {
    if (migration.concurrently === undefined) await runPatiently(client, migration, deps.log)
    else await buildIndex(client, migration, migration.concurrently)
  } finally {
    // Its time limits are not those of others.
    client.release(true)
  }
}

async function runPatiently(client: PoolClient, migration: Migration, log: Logger) {
  const start = performance.now()
  for (let pauseMs = 250; ; pauseMs = Math.min(2 * pauseMs, longestPauseMs)) {
    try {
      await client.query(`begin; set local lock_timeout = ${lockMs}; set local statement_timeout = 0`)
      await client.query(migration.text)
      await client.query(recordMigration, [migration.name, migration.serves])
      await client.query('commit')
      return
    } catch (error) {
      await client.query('rollback')
      if (!isLockedOut(error)) throw error
      if (performance.now() - start > deadlineMs) throw new OperatorMistake(toComplaint(migration), { cause: error })
      log.warn({ migration: migration.name, pauseMs }, 'a migration finds a table in use by others; it tries again')
    }
    await sleep(pauseMs)
  }
}

/** One that was cut off leaves an index behind that nobody uses, and that keeps its name. */
async function buildIndex(client: PoolClient, migration: Migration, index: string) {
  await client.query(`set lock_timeout = ${deadlineMs}; set statement_timeout = 0`)
  const { rows } = await client.query<{ done: boolean }>(
    'select indisvalid as done from pg_index where indexrelid = to_regclass($1)',
    [index],
  )
  if (rows[0]?.done === false) await client.query(`drop index concurrently ${client.escapeIdentifier(index)}`)
  if (rows[0]?.done !== true) await client.query(migration.text)
  await client.query(recordMigration, [migration.name, migration.serves])
}

/** Somebody had the lock, or we would have waited for each other. */
const isLockedOut = (error: unknown) => ['55P03', '40P01'].includes(String((error as { code?: unknown }).code))

const toComplaint = ({ name }: Migration) =>
  `The migration ${name} did not get its lock within ${deadlineMs / 60_000} minutes: a transaction that does not end ` +
  'holds a table (see pg_stat_activity). End it, then start this version again.'
