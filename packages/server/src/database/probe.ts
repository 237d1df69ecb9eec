import type { PoolClient } from 'pg'
import type { Logger } from '../runtime/logger.ts'
import type { Connector } from './connector.ts'
import type { DatabaseClock } from './database-clock.ts'

const probeTimeoutMs = 3000
/** The time includes the search for the primary among several servers, of which one may not answer. */
const connectTimeoutMs = 5000

type Deps = {
  connector: Connector
  /** Other connectors to the same database. */
  others?: Connector[]
  log: Logger
  clock: DatabaseClock
}

/**
 * Makes the probe of the database: whether it answers and accepts writes, and which server that is. It has a connection
 * of its own, which no other statement can block, and asks for the time, so that it also corrects the clock. When it
 * reaches another server than other connections do, those are closed, because statements on them would fail or wait for
 * an answer in vain.
 */
export function makeProbe({ connector, others = [], log, clock }: Deps) {
  const connectors = [connector, ...others]
  const pool = connector.openPool({
    max: 1,
    connectionTimeoutMillis: connectTimeoutMs,
    query_timeout: probeTimeoutMs,
    application_name: 'assay watch',
  })
  // The next probe notices that the connection is lost.
  pool.on('error', () => {})
  let running: Promise<void> | undefined

  async function runOnce() {
    try {
      closeOthers(await findServerId())
    } catch (error) {
      for (const one of connectors) one.forgetPrimary()
      throw error
    }
  }

  async function findServerId(): Promise<string> {
    const client: PoolClient = await pool.connect()
    try {
      await clock.measure(client)
      const serverId = await connector.requireWritable(client)
      client.release()
      return serverId
    } catch (error) {
      client.release(true)
      throw error
    }
  }

  function closeOthers(serverId: string) {
    const connections = connectors.reduce((sum, one) => sum + one.keepOnly(serverId), 0)
    if (connections === 0) return
    for (const one of others) one.forgetPrimary()
    const server = connector.findServer()
    log.warn({ server, connections }, 'another server is the primary now; closed the connections to the old one')
  }

  return {
    /** Rejects if the database does not answer or is read-only. Concurrent callers share a probe. */
    run(): Promise<void> {
      running ??= runOnce().finally(() => {
        running = undefined
      })
      return running
    },
    async close() {
      await running?.catch(() => {})
      await pool.end()
    },
  }
}
