import { Kysely, PostgresDialect } from 'kysely'
import pg from 'pg'
import type { Logger } from '../runtime/logger.ts'
import { requireSession } from './require-session.ts'
import type { Tables } from './tables.ts'
import { type DatabaseWatch, watchDatabase } from './watch-database.ts'

export type Database = { pool: pg.Pool; kysely: Kysely<Tables>; watch: DatabaseWatch; close(): Promise<void> }

const oldestMajor = 15

/** Connects, and makes sure at once that the server answers and is one we can work with. */
export async function openDatabase(deps: { url: string; connections: number; log: Logger }): Promise<Database> {
  const pool = new pg.Pool({
    connectionString: deps.url,
    max: deps.connections,
    connectionTimeoutMillis: 10_000,
    application_name: 'assay',
    // A statement whose answer got lost with the network must not hang its callers for ever.
    query_timeout: 65_000,
    keepAlive: true,
    // Set when it is connected, not with the connection: pgbouncer refuses settings that it does not know. A statement
    // that hangs must not hang its callers either. One plan for each prepared statement, made once: left to itself
    // PostgreSQL plans the admission statement anew for every batch, because it can count the rows of a given array and
    // only guess those of a parameter. Such a plan is kept, and queues are mostly empty when it is made: then it would be
    // cheapest to read all of one, and still be done so when 100,000 wait. So whole tables are read only where nothing
    // else can be done, and that is no reason to compile anything.
    onConnect: async (client) => {
      // The pool listens to those that are idle only. One that is lost in the middle of a transaction, between two of its
      // statements, would end the process; the next statement fails and tells.
      client.on('error', () => {})
      await client.query(
        'set statement_timeout = 60000; set plan_cache_mode = force_generic_plan;' +
          'set enable_seqscan = off; set jit = off',
      )
    },
  })
  const watch = watchDatabase(deps)
  // Without a listener the loss of an idle connection would end the process.
  pool.on('error', watch.suspect)
  try {
    await requireVersion(pool)
    await requireSession(pool)
  } catch (error) {
    await watch.close()
    await pool.end()
    throw error
  }
  const kysely = new Kysely<Tables>({ dialect: new PostgresDialect({ pool }) })
  const close = async () => {
    await watch.close()
    // Not by kysely, which ends nothing when it was not used.
    await pool.end()
  }
  return { pool, kysely, watch, close }
}

async function requireVersion(pool: pg.Pool) {
  const { rows } = await pool.query<{ server_version: string }>('show server_version')
  const version = rows[0]?.server_version ?? ''
  if (Number.parseInt(version, 10) < oldestMajor) {
    throw new Error(`PostgreSQL ${version} is too old, Assay needs ${oldestMajor} or newer`)
  }
}
