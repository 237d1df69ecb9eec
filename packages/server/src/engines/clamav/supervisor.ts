import { setTimeout as sleep } from 'node:timers/promises'
import type { Logger } from '../../runtime/logger.ts'
import { isAnswering } from './connection.ts'
import type { RunningClamd } from './start-clamd.ts'

const firstPauseMs = 100
const longestPauseMs = 30_000
/** After running that long without trouble, the next fall is a first one again. */
const steadyMs = 60_000
const pingEveryMs = 1000
const pingTimeoutMs = 2500
/** One may be lost to a full queue. */
const maxMissed = 2

/**
 * Keeps a clamd running: starts it again when it falls, with growing pauses, and ends one that has stopped answering, so
 * that the scans which wait for it can be tried again on the next.
 */
export function superviseClamd(deps: { start(): Promise<RunningClamd>; socket: string; log: Logger }) {
  const { log } = deps
  const stopping = new AbortController()
  let running: RunningClamd | undefined
  const firstTry = Promise.withResolvers<void>()
  const done = keepRunning()

  return {
    findRunning: () => running,
    /** Whether it came up or not. */
    firstTry: firstTry.promise,
    async close() {
      stopping.abort()
      running?.kill('SIGTERM')
      const force = setTimeout(() => running?.kill('SIGKILL'), 5000)
      await done
      clearTimeout(force)
    },
  }

  async function keepRunning() {
    let pauseMs = firstPauseMs
    while (!stopping.signal.aborted) {
      const since = Date.now()
      await runOnce()
      if (stopping.signal.aborted) return
      if (Date.now() - since > steadyMs) pauseMs = firstPauseMs
      await sleep(pauseMs, undefined, { signal: stopping.signal }).catch(() => {})
      pauseMs = Math.min(longestPauseMs, pauseMs * 2)
    }
  }

  async function runOnce() {
    try {
      const clamd = await deps.start()
      if (stopping.signal.aborted) clamd.kill('SIGTERM')
      running = clamd
      log.info({ pid: clamd.pid }, 'ClamAV runs')
      firstTry.resolve()
      const ended = new AbortController()
      void watch(clamd, ended.signal)
      await clamd.exited
      ended.abort()
      if (!stopping.signal.aborted) log.error({ pid: clamd.pid }, 'ClamAV ended; it is started again')
    } catch (error) {
      log.error({ err: error }, 'ClamAV does not start; it is tried again')
    } finally {
      running = undefined
      firstTry.resolve()
    }
  }

  async function watch(clamd: RunningClamd, ended: AbortSignal) {
    let missed = 0
    while (!ended.aborted) {
      missed = (await isAnswering({ path: deps.socket }, pingTimeoutMs)) ? 0 : missed + 1
      if (missed === maxMissed && !ended.aborted && !stopping.signal.aborted) {
        log.error({ pid: clamd.pid }, 'ClamAV does not answer; it is ended and started again')
        clamd.kill('SIGKILL')
        return
      }
      await sleep(pingEveryMs, undefined, { signal: ended }).catch(() => {})
    }
  }
}
