import { setTimeout as sleep } from 'node:timers/promises'
import type { Logger } from '../../runtime/logger.ts'
import { isAnswering } from './connection.ts'
import type { RunningClamd } from './start-clamd.ts'

const firstPauseMs = 100
const longestPauseMs = 30_000
/** After running for this long, the next crash is followed by the first pause again. */
const stableMs = 60_000
/** Pings that clamd may miss, because a single one may be lost to a full queue. */
const maxMissed = 2
/** Pings that a clamd may miss which uses processor time: it works, and the machine may be too busy for an answer. */
const maxMissedAtWork = 12

/**
 * Keeps a clamd running: restarts it after a crash, with growing pauses, and kills one that has stopped answering, so
 * that the scans which wait for it can be repeated on the next one.
 */
export function superviseClamd(deps: {
  start(): Promise<RunningClamd>
  socket: string
  log: Logger
  pingTimeoutMs?: number
  pingEveryMs?: number
}) {
  const { log, pingTimeoutMs = 2500, pingEveryMs = 1000 } = deps
  const stopping = new AbortController()
  let running: RunningClamd | undefined
  const firstTry = Promise.withResolvers<void>()
  const done = keepRunning()

  return {
    findRunning: () => running,
    /** Resolves after the first attempt to start, successful or not. */
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
      const startedMs = performance.now()
      await runOnce()
      if (stopping.signal.aborted) return
      if (performance.now() - startedMs > stableMs) pauseMs = firstPauseMs
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
      if (!stopping.signal.aborted) log.error({ pid: clamd.pid }, 'ClamAV ended and is restarted')
    } catch (error) {
      log.error({ err: error }, 'ClamAV does not start and is tried again')
    } finally {
      running = undefined
      firstTry.resolve()
    }
  }

  async function watch(clamd: RunningClamd, ended: AbortSignal) {
    let missed = 0
    let lastMs = clamd.readProcessorMs()
    while (!ended.aborted) {
      missed = (await isAnswering({ path: deps.socket }, pingTimeoutMs)) ? 0 : missed + 1
      const processorMs = clamd.readProcessorMs()
      const isOverdue = missed >= (processorMs > lastMs ? maxMissedAtWork : maxMissed)
      lastMs = processorMs
      if (isOverdue && !ended.aborted && !stopping.signal.aborted) {
        log.error({ pid: clamd.pid }, 'ClamAV does not answer; it is killed and restarted')
        clamd.kill('SIGKILL')
        return
      }
      await sleep(pingEveryMs, undefined, { signal: ended }).catch(() => {})
    }
  }
}
