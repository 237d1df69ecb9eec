import type pg from 'pg'
import type { Logger } from '../runtime/logger.ts'
import { type Connector, makeConnector } from './connector.ts'
import { findRow, inTransaction, type Queryable } from './query.ts'
import { listServerLacks, type ServerLack, toLackTable } from './server-lacks.ts'
import { type DatabaseClock, type DatabaseWatch, makeDatabaseClock, watchDatabase } from './watch-database.ts'

export type Database = {
  pool: pg.Pool
  /** Connections that keep their server process: for LISTEN, and for locks over several transactions. */
  direct: { pool: pg.Pool; connector: Connector }
  watch: DatabaseWatch
  /** The clock of the database: every time that other nodes read is its time, not that of this machine. */
  clock: DatabaseClock
  /** Settings that the server lacks, though Assay works without them. */
  lacks: ServerLack[]
  close(): Promise<void>
}

type Deps = {
  url: string
  /** Address of the same database without the pooler, where `url` leads through one in transaction mode. */
  directUrl?: string | undefined
  connections: number
  log: Logger
  /** Whether this is the server that Assay starts itself: its version is known, and there is no pooler before it. */
  isEmbedded?: boolean
}

/** The watch and the notifications have a connection each. */
const ownConnections = 2
/** Migrations hold a lock on one connection while they work on another. */
const directConnections = 2

/** Connects to the database and checks that the server answers and that Assay can work with it. */
export async function openDatabase(deps: Deps): Promise<Database> {
  const { log, isEmbedded = false } = deps
  const isShared = deps.directUrl !== undefined
  const connector = makeConnector({ url: deps.url, isShared })
  const pool = openPool(connector, deps.connections)
  const direct = deps.directUrl === undefined ? { pool, connector } : openDirect(deps.directUrl)
  const clock = makeDatabaseClock()
  const watch = watchDatabase({ connector, others: isShared ? [direct.connector] : [], log, clock, isEmbedded })
  // Without a listener the loss of an idle connection would end the process.
  pool.on('error', watch.reportError)
  direct.pool.on('error', watch.reportError)
  const close = async () => {
    await watch.close()
    await pool.end()
    if (isShared) await direct.pool.end()
  }
  try {
    const lacks: ServerLack[] = []
    if (!isEmbedded) {
      const connections = deps.connections + ownConnections
      const found = await listServerLacks(pool, { connections, hosts: connector.countHosts(), isShared })
      lacks.push(...requireUsable(found))
      await requireSessionPooling(direct.pool, isShared)
      if (isShared) await requireSameDatabase(pool, direct.pool)
    }
    await clock.measure(pool)
    return { pool, direct, watch, clock, lacks, close }
  } catch (error) {
    await close()
    throw error
  }
}

const openPool = (connector: Connector, connections: number): pg.Pool =>
  connector.openPool({
    max: connections,
    connectionTimeoutMillis: 10_000,
    application_name: 'assay',
    // A statement whose answer is lost in the network must not hang its callers for ever.
    query_timeout: 65_000,
  })

function openDirect(url: string) {
  const connector = makeConnector({ url })
  return { connector, pool: openPool(connector, directConnections) }
}

/** Returns the lacks with which Assay works, and throws a table if there are others. */
function requireUsable(lacks: ServerLack[]): ServerLack[] {
  const missing = lacks.filter(({ required }) => required)
  if (missing.length > 0) throw new Error(`PostgreSQL lacks what Assay needs:\n${toLackTable(missing)}\n`)
  return lacks
}

const poolingChecks = 3

/**
 * Prepared statements and settings belong to a connection. A pooler that assigns a server process to each transaction
 * takes them away between two transactions, so Assay needs another way to the database beside one. Backend process ids
 * reveal such a pooler: while one of our connections is in a transaction, no other may have its process, and each keeps
 * its own.
 */
async function requireSessionPooling(pool: pg.Pool, isDirect: boolean): Promise<void> {
  const client = await pool.connect()
  try {
    for (let i = 0; i < poolingChecks; i++) {
      const before = await findProcessId(client)
      const [other, after] = await inTransaction(pool, async (transaction) => [
        await findProcessId(transaction),
        await findProcessId(client),
      ])
      if (other !== before && after === before) continue
      throw new Error(
        isDirect
          ? 'ASSAY_DATABASE_DIRECT_URL leads through a pooler that gives every transaction another connection; name the server itself'
          : 'a pooler gives every transaction another connection; set ASSAY_DATABASE_DIRECT_URL to the address of the server itself, or pool_mode = session',
      )
    }
  } finally {
    client.release()
  }
}

const findProcessId = async (client: Queryable) =>
  (await findRow<{ pid: number }>(client, 'select pg_backend_pid() as pid'))?.pid

async function requireSameDatabase(pool: pg.Pool, direct: pg.Pool) {
  const [one, other] = await Promise.all([findIdentity(pool), findIdentity(direct)])
  if (one !== other) throw new Error('ASSAY_DATABASE_URL and ASSAY_DATABASE_DIRECT_URL lead to different databases')
}

const findIdentity = async (db: Queryable) =>
  (
    await findRow<{ identity: string }>(
      db,
      `select concat(extract(epoch from pg_postmaster_start_time()), ' ', current_database()) as identity`,
    )
  )?.identity
