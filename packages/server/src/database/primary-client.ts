import pg from 'pg'
import type { PostgresHost } from '../runtime/postgres-url.ts'
import { toName } from './find-primary.ts'

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
const sessionSettings =
  'set statement_timeout = 60000; set plan_cache_mode = force_generic_plan; set enable_seqscan = off; set jit = off;'

/**
 * `serverId` is the start time of the server, which no other server shares, to the microsecond. A server in recovery is
 * read-only too.
 */
export const describeServer = `
select extract(epoch from pg_postmaster_start_time())::text as "serverId",
  pg_is_in_recovery() as "isRecovering", current_setting('transaction_read_only') = 'on' as "isReadOnly"`

export type DescribedServer = { serverId: string; isRecovering: boolean; isReadOnly: boolean }

export type ClientOptions = Omit<pg.PoolConfig, 'Client'>

/** A client of the primary; `serverId` is undefined until it is connected. */
export type PrimaryClient = pg.Client & { serverId: string | undefined }

type Deps = {
  /** Returns the server to connect to. */
  choose(): Promise<PostgresHost>
  /** Called when this server turns out to be no primary. */
  forget(host: PostgresHost): void
  toOptions(options: ClientOptions): ClientOptions
  /** All clients that are connected or being connected. */
  clients: Set<PrimaryClient>
  isShared: boolean
}

type ClientClass = new (options?: ClientOptions) => PrimaryClient

/** Makes the class of clients, as pools want one. */
export function makeClientClass({ choose, forget, toOptions, clients, isShared }: Deps): ClientClass {
  class Client extends pg.Client {
    serverId: string | undefined

    constructor(options: ClientOptions = {}) {
      super(toOptions(options))
      // A pool listens for errors of idle clients only. Without this listener, a connection that is lost between two
      // statements of a transaction would end the process; with it, the next statement fails.
      this.on('error', () => {})
    }

    override connect(): Promise<pg.Client>
    override connect(callback: ((error: Error) => void) | ((error: null, client: pg.Client) => void)): void
    override connect(callback?: (error: never, client: pg.Client) => void): Promise<pg.Client> | undefined {
      const connected = this.#connectToPrimary()
      if (callback === undefined) return connected
      connected.then(
        () => callback(null as never, this),
        (error: Error) => callback(error as never, this),
      )
      return undefined
    }

    async #connectToPrimary(): Promise<pg.Client> {
      const host = await choose()
      Object.assign(this, host)
      clients.add(this)
      this.once('end', () => clients.delete(this))
      try {
        await super.connect()
        // The settings are sent as a statement: pgbouncer rejects a connection that carries settings it does not know.
        // A connection that shares its server process must leave no settings behind.
        const results: unknown = await super.query(`${isShared ? '' : sessionSettings}${describeServer}`)
        const last = (Array.isArray(results) ? results.at(-1) : results) as pg.QueryResult<DescribedServer>
        this.serverId = requireWritable(host, last.rows[0]).serverId
        return this
      } catch (error) {
        forget(host)
        clients.delete(this)
        void this.end().catch(() => {})
        throw error
      }
    }
  }
  return isShared ? withoutNames(Client) : Client
}

/** Sends no prepared statements: the next transaction of the connection may run in another server process. */
const withoutNames = (Client: ClientClass): ClientClass =>
  class extends Client {
    // biome-ignore lint/suspicious/noExplicitAny: the driver declares eight signatures, which all pass through here.
    override query(query: any, ...rest: any[]): any {
      const isNamed = typeof query === 'object' && typeof query.text === 'string' && query.name !== undefined
      return super.query(isNamed ? { ...query, name: undefined } : query, ...(rest as []))
    }
  }

/** SQLSTATE 25006 (read-only transaction) makes this an outage in which nothing was committed. */
class ReadOnlyServer extends Error {
  readonly code = '25006'
}

export function requireWritable(host: PostgresHost, described: DescribedServer | undefined): DescribedServer {
  if (described === undefined) throw new Error('the server did not describe itself')
  if (described.isRecovering) throw new ReadOnlyServer(`${toName(host)} is a standby, or still recovering`)
  if (described.isReadOnly) {
    throw new ReadOnlyServer(`${toName(host)} is read-only (default_transaction_read_only is on)`)
  }
  return described
}
