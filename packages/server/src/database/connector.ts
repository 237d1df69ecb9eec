import type { Socket } from 'node:net'
import pg from 'pg'
import { type PostgresHost, parsePostgresUrl } from '../runtime/postgres-url.ts'
import { findPrimary, toName } from './find-primary.ts'
import {
  type ClientOptions,
  type DescribedServer,
  describeServer,
  makeClientClass,
  type PrimaryClient,
  requireWritable,
} from './primary-client.ts'
import { makeTlsReader } from './tls-options.ts'

/** The timeline, as eight hex digits, of a server that is not recovering. */
const readTimeline = `select left(pg_walfile_name(pg_current_wal_insert_lsn()), 8) as timeline`

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
