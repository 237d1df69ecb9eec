import { setTimeout as sleep } from 'node:timers/promises'
import type { PoolClient } from 'pg'
import type { Clock } from '../domain/clock.ts'
import type { Logger } from '../runtime/logger.ts'
import type { Connector } from './connector.ts'
import { isOutage } from './database-error.ts'
import { findRow, type Queryable } from './query.ts'

const minPauseMs = 250
const maxPauseMs = 2000
/** A server that stops answering, without closing a connection, is noticed by probes alone. */
const probeEveryMs = 5000
/** Lost connections are logged at most this often while the database answers. */
const lossLogPauseMs = 10_000

type Deps = {
  connector: Connector
  /** Other connectors to the same database. */
  others?: Connector[]
  log: Logger
  clock: DatabaseClock
  /** A server that Assay runs itself has no successor, and its end is noticed at once. */
  isEmbedded?: boolean | undefined
}

/**
 * Monitors with probes whether the database answers and accepts writes, and how its clock differs from that of this
 * machine. Every part that meets an outage reports it here; the watch logs the beginning and the end of an outage once,
 * and probes with growing pauses in between.
 */
export function watchDatabase(deps: Deps) {
  const { log, clock } = deps
  const probe = makeProbe(deps)
  const closing = new AbortController()
  let unavailableSinceMs: number | undefined
  let nextLossLogMs = 0
  let outages = 0
  let recovery: Promise<void> | undefined
  let isClockOff = false
  const probeTimer =
    deps.isEmbedded === true ? undefined : setInterval(() => void probe.run().catch(reportError), probeEveryMs)

  return {
    isUnavailable: () => unavailableSinceMs !== undefined,
    countOutages: () => outages,
    reportError,
    /** Also reports the outage, so that the caller need not log it. */
    isOutage(error: unknown): boolean {
      reportError(error)
      return isOutage(error)
    },
    /** Probes the database, and returns a sentence if it does not answer. Concurrent callers share a probe. */
    async findFault(): Promise<string | undefined> {
      if (unavailableSinceMs === undefined) await probe.run()
      if (unavailableSinceMs === undefined) return undefined
      const seconds = Math.round((performance.now() - unavailableSinceMs) / 1000)
      return `The database has not answered for ${seconds} s. Requests get 503 until it is back, and nothing is charged.`
    },
    /**
     * Returns a sentence while the clock of this machine differs from the database's, as the last probe measured it, and
     * logs when that begins and ends.
     */
    findClockFault(): string | undefined {
      const fault = clock.findFault()
      if (isClockOff === (fault !== undefined)) return fault
      isClockOff = fault !== undefined
      const seconds = Math.round(clock.findDifferenceMs() / 100) / 10
      if (isClockOff) log.warn({ seconds }, 'the clock of this machine differs from that of the database')
      else log.info({ seconds }, 'the clock of this machine agrees with that of the database again')
      return fault
    },
    async close() {
      clearInterval(probeTimer)
      closing.abort()
      await recovery
      await probe.close()
    },
  }

  /** Probes the database if this error looks like an outage. */
  function reportError(error: unknown) {
    if (closing.signal.aborted || recovery !== undefined || !isOutage(error)) return
    recovery = waitForReturn(error as Error).finally(() => {
      recovery = undefined
    })
  }

  async function waitForReturn({ message: reason }: Error) {
    const { signal } = closing
    for (let pauseMs = minPauseMs; !signal.aborted; pauseMs = Math.min(2 * pauseMs, maxPauseMs)) {
      try {
        await probe.run()
        return recordAnswer(reason)
      } catch {
        recordOutage(reason)
        await sleep(pauseMs, undefined, { signal }).catch(() => {})
      }
    }
  }

  function recordOutage(reason: string) {
    if (unavailableSinceMs !== undefined || closing.signal.aborted) return
    unavailableSinceMs = performance.now()
    outages++
    log.error({ reason }, 'the database is unavailable; requests get 503 until it answers again')
  }

  function recordAnswer(reason: string) {
    const nowMs = performance.now()
    if (unavailableSinceMs !== undefined) {
      log.info({ seconds: Math.round((nowMs - unavailableSinceMs) / 100) / 10 }, 'the database answers again')
      unavailableSinceMs = undefined
      return
    }
    if (nowMs >= nextLossLogMs) log.warn({ reason }, 'a database connection was lost; the database answers')
    nextLossLogMs = nowMs + lossLogPauseMs
  }
}

export type DatabaseWatch = ReturnType<typeof watchDatabase>

const probeTimeoutMs = 3000
/** The time includes the search for the primary among several servers, of which one may not answer. */
const connectTimeoutMs = 5000

/**
 * Makes the probe of the database: whether it answers and accepts writes, and which server that is. It has a connection
 * of its own, which no other statement can block, and asks for the time, so that it also corrects the clock. When it
 * reaches another server than other connections do, those are closed, because statements on them would fail or wait for
 * an answer in vain.
 */
function makeProbe({ connector, others = [], log, clock }: Deps) {
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

/** The clock of the database, kept by this process between measurements. */
export type DatabaseClock = Clock & {
  /** Asks the database for its time, and corrects this clock. */
  measure(db: Queryable): Promise<void>
  /** How far the clock of this machine is ahead of the database's, in milliseconds; below zero when it is behind. */
  findDifferenceMs(): number
  /** A sentence while the clocks differ by more than 5 s. */
  findFault(): string | undefined
}

const largestDifferenceMs = 5000

/**
 * Makes the clock by which a node dates what other nodes read. Between measurements it counts with the monotonic clock,
 * so that setting the time of this machine changes nothing. Each measurement moves it only as far as the answer proves:
 * the database read its clock at some moment between question and answer. An answer that took long, as on a machine that
 * is overloaded, proves little, and then moves it little.
 */
export function makeDatabaseClock(read = { monotonicMs: () => performance.now(), wallMs: () => Date.now() }) {
  /** Time of the database minus the monotonic clock; undefined before the first measurement. */
  let offsetMs: number | undefined
  const now = () => (offsetMs === undefined ? read.wallMs() : read.monotonicMs() + offsetMs)

  const clock: DatabaseClock = {
    now: () => new Date(now()),

    async measure(db) {
      const askedMs = read.monotonicMs()
      const row = await findRow<{ ms: number }>(db, 'select extract(epoch from clock_timestamp())::float8 * 1000 as ms')
      const answeredMs = read.monotonicMs()
      if (row === undefined) return
      const [least, most] = [row.ms - answeredMs, row.ms - askedMs]
      offsetMs = offsetMs === undefined ? (least + most) / 2 : Math.min(Math.max(offsetMs, least), most)
    },

    findDifferenceMs: () => read.wallMs() - now(),

    findFault() {
      const differenceMs = clock.findDifferenceMs()
      if (Math.abs(differenceMs) <= largestDifferenceMs) return undefined
      const seconds = Math.round(Math.abs(differenceMs) / 1000)
      const side = differenceMs > 0 ? 'ahead of' : 'behind'
      return `The clock of this machine is ${seconds} s ${side} PostgreSQL's, which Assay goes by. Set both by NTP.`
    },
  }
  return clock
}
