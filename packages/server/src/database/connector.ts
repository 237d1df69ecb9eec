import { readFileSync } from 'node:fs'
import type { Socket } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import type { ConnectionOptions } from 'node:tls'
import pg from 'pg'
import { type PostgresHost, type PostgresTls, parsePostgresUrl } from '../runtime/postgres-url.ts'

const examineTimeoutMs = 3000
/** A peer that vanished without closing its connections is noticed 10 s later, plus ten probes of the kernel. */
const keepAliveAfterMs = 10_000

/**
 * Makes all connections to the servers of one URL: each goes to the primary, and none stays with a server that no
 * longer is. A connection is checked in the round trip that sends its settings; queries cost nothing more.
 */
export function makeConnector({ url, isShared = false }: { url: string; isShared?: boolean }) {
  const address = parsePostgresUrl(url)
  const readTls = makeTlsReader(address.tls)
  const clients = new Set<PrimaryClient>()
  let [primary] = address.hosts.length === 1 ? address.hosts : []
  let searching: Promise<PostgresHost> | undefined

  /** Returns the server that was the primary last, or searches for it. Concurrent callers share a search. */
  async function choose(): Promise<PostgresHost> {
    if (primary !== undefined) return primary
    searching ??= findPrimary(address.hosts, examine).finally(() => {
      searching = undefined
    })
    primary = await searching
    return primary
  }

  const isPrimary = ({ host, port }: PostgresHost) => host === primary?.host && port === primary.port

  function forget(host = primary) {
    if (address.hosts.length > 1 && primary === host) primary = undefined
  }

  const toOptions = (options: ClientOptions): ClientOptions => ({
    keepAlive: true,
    keepAliveInitialDelayMillis: keepAliveAfterMs,
    ...options,
    connectionTimeoutMillis: address.connectTimeoutMs ?? options.connectionTimeoutMillis,
    application_name: address.applicationName ?? options.application_name,
    user: address.user,
    password: address.password,
    database: address.database,
    options: address.options,
    ssl: readTls(),
  })

  async function examine(host: PostgresHost) {
    const timeoutMs = address.connectTimeoutMs ?? examineTimeoutMs
    const options = { connectionTimeoutMillis: timeoutMs, query_timeout: timeoutMs, application_name: 'assay search' }
    const client = new pg.Client({ ...toOptions(options), ...host })
    client.on('error', () => {})
    try {
      await client.connect()
      requireWritable(host, (await client.query<DescribedServer>(describeServer)).rows[0])
      const { rows } = await client.query<{ timeline: string }>(readTimeline)
      return { timeline: rows[0]?.timeline ?? '' }
    } finally {
      void client.end().catch(() => {})
    }
  }

  const Client = makeClientClass({ choose, forget, toOptions, clients, isShared })
  return {
    openPool: (options: ClientOptions): pg.Pool => new pg.Pool({ ...options, Client }),
    newClient: (options: ClientOptions): pg.Client => new Client(options),
    countHosts: () => address.hosts.length,
    /** Name of the server that connections go to, for the log. */
    findServer: () => (primary === undefined ? undefined : toName(primary)),
    /** The next connection searches for the primary. */
    forgetPrimary: () => forget(),
    /**
     * Closes connections to other servers than this, and returns their number. A statement that runs on one fails as
     * it does when the connection is lost.
     */
    keepOnly(serverId: string): number {
      // A connection that is being opened has no server id yet; it may wait for a server that does not answer.
      const others = [...clients].filter((client) =>
        client.serverId === undefined ? !isPrimary(client) : client.serverId !== serverId,
      )
      for (const client of others) {
        const { stream } = client.connection as unknown as { stream: Socket }
        stream.destroy(new Error('Connection terminated: another server is the primary now'))
      }
      return others.length
    },
    /**
     * Returns the id of the server that answers on this connection, and throws if it has become read-only. A pooler
     * may have moved the connection to another server since it was opened.
     */
    async requireWritable(client: Pick<pg.Client, 'query' | 'host' | 'port'>): Promise<string> {
      const { rows } = await client.query<DescribedServer>(describeServer)
      return requireWritable(client, rows[0]).serverId
    },
  }
}

export type Connector = ReturnType<typeof makeConnector>

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
const describeServer = `
select extract(epoch from pg_postmaster_start_time())::text as "serverId",
  pg_is_in_recovery() as "isRecovering", current_setting('transaction_read_only') = 'on' as "isReadOnly"`

/** The timeline, as eight hex digits, of a server that is not recovering. */
const readTimeline = `select left(pg_walfile_name(pg_current_wal_insert_lsn()), 8) as timeline`

type DescribedServer = { serverId: string; isRecovering: boolean; isReadOnly: boolean }

export type ClientOptions = Omit<pg.PoolConfig, 'Client'>

/** A client of the primary; `serverId` is undefined until it is connected. */
type PrimaryClient = pg.Client & { serverId: string | undefined }

type ClientClass = new (options?: ClientOptions) => PrimaryClient

/** Makes the class of clients, as pools want one. */
function makeClientClass(deps: {
  /** Returns the server to connect to. */
  choose(): Promise<PostgresHost>
  /** Called when this server turns out to be no primary. */
  forget(host: PostgresHost): void
  toOptions(options: ClientOptions): ClientOptions
  /** All clients that are connected or being connected. */
  clients: Set<PrimaryClient>
  isShared: boolean
}): ClientClass {
  const { choose, forget, toOptions, clients, isShared } = deps

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

function requireWritable(host: PostgresHost, described: DescribedServer | undefined): DescribedServer {
  if (described === undefined) throw new Error('the server did not describe itself')
  if (described.isRecovering) throw new ReadOnlyServer(`${toName(host)} is a standby, or still recovering`)
  if (described.isReadOnly) {
    throw new ReadOnlyServer(`${toName(host)} is read-only (default_transaction_read_only is on)`)
  }
  return described
}

/** A server that accepts writes. A server that was promoted later has a higher timeline. */
type Primary = { timeline: string }

/** How long the search waits for other servers after the first that accepts writes. */
const graceMs = 1000

/**
 * Asks all servers at once and returns the primary. While a failover is under way two of them may accept writes: the
 * newer timeline wins, because the other server is the old primary.
 */
export async function findPrimary(
  hosts: PostgresHost[],
  examine: (host: PostgresHost) => Promise<Primary>,
): Promise<PostgresHost> {
  const found: (Primary & { host: PostgresHost })[] = []
  const faults: string[] = []
  const first = Promise.withResolvers<void>()
  const all = hosts.map(async (host) => {
    try {
      found.push({ host, ...(await examine(host)) })
      first.resolve()
    } catch (error) {
      const { message, code } = error as Error & { code?: string }
      faults.push(`${toName(host)}: ${message || code}`)
    }
  })
  await Promise.race([Promise.all(all), first.promise.then(() => sleep(graceMs, undefined, { ref: false }))])
  const [newest] = found.toSorted((a, b) => (a.timeline < b.timeline ? 1 : -1))
  if (newest !== undefined) return newest.host
  throw new NoPrimary(`none of the ${hosts.length} servers is a primary that accepts writes (${faults.join('; ')})`)
}

/** SQLSTATE 57P03 (cannot connect now) makes this an outage in which nothing was sent, so nothing was committed. */
class NoPrimary extends Error {
  readonly code = '57P03'
}

const toName = ({ host, port }: PostgresHost) => (host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`)

/**
 * Reads the certificates again for each connection, so that renewed ones are used. A file that cannot be read later,
 * for example while it is being replaced, leaves the last ones in use.
 */
function makeTlsReader(tls: PostgresTls | undefined): () => ConnectionOptions | false {
  if (tls === undefined) return () => false
  const readFile = (file: string | undefined) => (file === undefined ? undefined : readFileSync(file, 'utf8'))
  const read = (): ConnectionOptions => {
    const options: ConnectionOptions = { rejectUnauthorized: tls.verify !== 'none' }
    // The driver takes a key that is present and undefined for a key.
    const [ca, crl, cert, key] = [tls.caFile, tls.crlFile, tls.certFile, tls.keyFile].map(readFile)
    if (ca !== undefined) options.ca = ca
    if (crl !== undefined) options.crl = crl
    if (cert !== undefined) options.cert = cert
    if (key !== undefined) options.key = key
    if (tls.keyPassword !== undefined) options.passphrase = tls.keyPassword
    if (tls.verify === 'ca') options.checkServerIdentity = () => undefined
    return options
  }
  let last = read()
  return () => {
    try {
      last = read()
    } catch {
      // The next connection tries again.
    }
    return last
  }
}
