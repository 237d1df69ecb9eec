import pg from 'pg'
import type { Logger } from '../runtime/logger.ts'
import { type DatabaseClock, makeDatabaseClock } from './database-clock.ts'
import { findRow, inTransaction, type Queryable } from './query.ts'
import { type DatabaseWatch, watchDatabase } from './watch-database.ts'

/** `clock` is the database's: every time that other nodes read is its time, not that of this machine. */
export type Database = {
  url: string
  pool: pg.Pool
  watch: DatabaseWatch
  clock: DatabaseClock
  close(): Promise<void>
}

const oldestMajor = 15

/**
 * Settings of every connection:
 * - statement_timeout: a statement that hangs must not hang its callers.
 * - plan_cache_mode: PostgreSQL plans each prepared statement once. Otherwise it would plan the admission statement for
 *   every batch, because it knows the size of an array that is given and only guesses the size of a parameter.
 * - enable_seqscan: that one plan is made while queues are mostly empty, when reading a whole table is cheapest, and
 *   would still be used with 100,000 jobs waiting. Turned off, PostgreSQL reads a whole table only where no index
 *   helps.
 * - jit: the high cost that PostgreSQL then assigns to such a scan is no reason to compile it.
 */
const connectionSettings =
  'set statement_timeout = 60000; set plan_cache_mode = force_generic_plan; set enable_seqscan = off; set jit = off'

/** Connects to the database and checks that the server answers and that Assay can work with it. */
export async function openDatabase(deps: {
  url: string
  connections: number
  log: Logger
  /** Whether this is the server that Assay starts itself: its version is known, and there is no pooler before it. */
  isEmbedded?: boolean
}): Promise<Database> {
  const pool = new pg.Pool({
    connectionString: deps.url,
    max: deps.connections,
    connectionTimeoutMillis: 10_000,
    application_name: 'assay',
    // A statement whose answer is lost in the network must not hang its callers for ever.
    query_timeout: 65_000,
    keepAlive: true,
    onConnect: async (client) => {
      // The pool listens for errors of idle clients only. Without this listener, a connection that is lost between two
      // statements of a transaction would end the process; with it, the next statement fails.
      client.on('error', () => {})
      // The settings are sent as a statement: pgbouncer rejects a connection that carries settings it does not know.
      await client.query(connectionSettings)
    },
  })
  const clock = makeDatabaseClock()
  const watch = watchDatabase({ ...deps, clock })
  // Without a listener the loss of an idle connection would end the process.
  pool.on('error', watch.reportError)
  const close = async () => {
    await watch.close()
    await pool.end()
  }
  try {
    if (deps.isEmbedded !== true) {
      await requireVersion(pool)
      await requireSessionPooling(pool)
    }
    await clock.measure(pool)
  } catch (error) {
    await close()
    throw error
  }
  return { url: deps.url, pool, watch, clock, close }
}

async function requireVersion(pool: pg.Pool) {
  const { server_version: version = '' } =
    (await findRow<{ server_version: string }>(pool, 'show server_version')) ?? {}
  if (Number.parseInt(version, 10) < oldestMajor) {
    throw new Error(`PostgreSQL ${version} is too old, Assay needs ${oldestMajor} or newer`)
  }
}

const poolingChecks = 3

/**
 * Prepared statements and settings belong to a connection. A pooler that assigns a server process to each transaction
 * takes them away between two transactions, so Assay refuses to start behind one. Backend process ids reveal such a
 * pooler: while one of our connections is in a transaction, no other may have its process, and each keeps its own.
 */
async function requireSessionPooling(pool: pg.Pool): Promise<void> {
  const client = await pool.connect()
  try {
    for (let i = 0; i < poolingChecks; i++) {
      const before = await findProcessId(client)
      const [other, after] = await inTransaction(pool, async (transaction) => [
        await findProcessId(transaction),
        await findProcessId(client),
      ])
      if (other === before || after !== before) {
        throw new Error('a pooler gives every transaction another connection, and Assay needs pool_mode = session')
      }
    }
  } finally {
    client.release()
  }
}

const findProcessId = async (client: Queryable) =>
  (await findRow<{ pid: number }>(client, 'select pg_backend_pid() as pid'))?.pid
