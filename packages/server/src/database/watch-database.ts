import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'
import type { Logger } from '../runtime/logger.ts'
import { isOutage } from './database-error.ts'

const minPauseMs = 250
const maxPauseMs = 5000
const probeTimeoutMs = 3000
/** Lost connections are logged at most this often while the database answers. */
const lossLogPauseMs = 10_000

/**
 * Monitors whether the database answers. Probes use a connection of their own, which no other statement can block.
 * Every part that meets an outage reports it here; the watch logs the beginning and the end of an outage once, and
 * probes with growing pauses in between.
 */
export function watchDatabase({ url, log }: { url: string; log: Logger }) {
  const probePool = new pg.Pool({
    connectionString: url,
    max: 1,
    connectionTimeoutMillis: probeTimeoutMs,
    query_timeout: probeTimeoutMs,
    application_name: 'assay watch',
  })
  // The next probe notices that the connection is lost.
  probePool.on('error', () => {})
  const closing = new AbortController()
  let unavailableSinceMs: number | undefined
  let nextLossLogMs = 0
  let outages = 0
  let probing: Promise<unknown> | undefined
  let recovery: Promise<void> | undefined

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
      if (unavailableSinceMs === undefined) await probe()
      if (unavailableSinceMs === undefined) return undefined
      const seconds = Math.round((performance.now() - unavailableSinceMs) / 1000)
      return `The database has not answered for ${seconds} s. Requests get 503 until it is back, and nothing is charged.`
    },
    async close() {
      closing.abort()
      await recovery
      await probePool.end()
    },
  }

  /** Probes the database if this error looks like an outage. */
  function reportError(error: unknown) {
    if (closing.signal.aborted || recovery !== undefined || !isOutage(error)) return
    recovery = waitForReturn(error as Error).finally(() => {
      recovery = undefined
    })
  }

  function probe(): Promise<unknown> {
    probing ??= probePool.query('select 1').finally(() => {
      probing = undefined
    })
    return probing
  }

  async function waitForReturn({ message: reason }: Error) {
    const { signal } = closing
    for (let pauseMs = minPauseMs; !signal.aborted; pauseMs = Math.min(2 * pauseMs, maxPauseMs)) {
      try {
        await probe()
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
