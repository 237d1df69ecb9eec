import pg from 'pg'
import type { Logger } from '../runtime/logger.ts'
import { isOutage } from './database-error.ts'

const minPauseMs = 250
const maxPauseMs = 5000
const probeMs = 3000
/** Single connections that are lost are worth a line, and no more than this often. */
const quietMs = 10_000

/**
 * Knows whether the database answers, by a connection of its own: one that waits for nobody's statement. Whoever meets
 * an outage says so here. It is logged once when it begins and once when it is over, and in between asked for with
 * growing pauses.
 */
export function watchDatabase(deps: { url: string; log: Logger }) {
  const { log } = deps
  const line = new pg.Pool({
    ...{ connectionString: deps.url, max: 1, connectionTimeoutMillis: probeMs, query_timeout: probeMs },
    application_name: 'assay watch',
  })
  // Its loss is found by the next question.
  line.on('error', () => {})
  const closing = new AbortController()
  let awaySinceMs: number | undefined
  let quietUntilMs = 0
  let outages = 0
  let probing: Promise<unknown> | undefined
  let waiting: Promise<void> | undefined

  return {
    isAway: () => awaySinceMs !== undefined,
    countOutages: () => outages,
    suspect,
    /** An outage is looked into, and need not be told of by whoever met it. */
    isOutage(error: unknown): boolean {
      suspect(error)
      return isOutage(error)
    },
    /** A sentence while it is away; else asks it. Those who ask at once share one question. */
    async findFault(): Promise<string | undefined> {
      if (awaySinceMs === undefined) await probeOnce()
      if (awaySinceMs === undefined) return undefined
      const seconds = Math.round((performance.now() - awaySinceMs) / 1000)
      return `The database has not answered for ${seconds} s. Requests get 503 until it is back, and nothing is charged.`
    },
    async close() {
      closing.abort()
      await waiting
      await line.end()
    },
  }

  /** Whatever failed; only what looks like an outage is looked into. */
  function suspect(error: unknown) {
    if (closing.signal.aborted || waiting !== undefined || !isOutage(error)) return
    waiting = waitForReturn(error as Error).finally(() => {
      waiting = undefined
    })
  }

  function probeOnce(): Promise<unknown> {
    probing ??= line.query('select 1').finally(() => {
      probing = undefined
    })
    return probing
  }

  async function waitForReturn({ message: reason }: Error) {
    for (let pauseMs = minPauseMs; !closing.signal.aborted; pauseMs = Math.min(2 * pauseMs, maxPauseMs)) {
      try {
        await probeOnce()
        sayItIsThere(reason)
        return
      } catch {
        sayItIsAway(reason)
        await rest(pauseMs)
      }
    }
  }

  function sayItIsAway(reason: string) {
    if (awaySinceMs !== undefined || closing.signal.aborted) return
    awaySinceMs = performance.now()
    outages++
    log.error({ reason }, 'the database is away; it is tried again, and requests get 503 meanwhile')
  }

  function sayItIsThere(reason: string) {
    const nowMs = performance.now()
    if (awaySinceMs !== undefined) {
      log.info({ seconds: Math.round((nowMs - awaySinceMs) / 100) / 10 }, 'the database answers again')
    } else if (nowMs >= quietUntilMs) log.warn({ reason }, 'a database connection was lost; others work')
    if (awaySinceMs === undefined) quietUntilMs = nowMs + quietMs
    awaySinceMs = undefined
  }

  function rest(ms: number): Promise<void> {
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, ms)
      closing.signal.addEventListener('abort', () => {
        clearTimeout(timer)
        resolve()
      })
    })
  }
}

export type DatabaseWatch = ReturnType<typeof watchDatabase>
