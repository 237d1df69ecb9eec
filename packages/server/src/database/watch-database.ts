import { setTimeout as sleep } from 'node:timers/promises'
import { isOutage } from './database-error.ts'
import { makeProbe } from './probe.ts'

const minPauseMs = 250
const maxPauseMs = 2000
/** A server that stops answering, without closing a connection, is noticed by probes alone. */
const probeEveryMs = 5000
/** Lost connections are logged at most this often while the database answers. */
const lossLogPauseMs = 10_000

type Deps = Parameters<typeof makeProbe>[0] & {
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
