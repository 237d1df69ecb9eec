import { randomUUID } from 'node:crypto'
import type { Content } from '../../domain/content/content.ts'
import { EngineDown, type EngineHealth } from '../../domain/ports/engines.ts'
import type { Logger } from '../../runtime/logger.ts'
import { toPrintable } from '../../runtime/text-lines.ts'
import { startAwakeTimer } from '../../runtime/timers.ts'
import { type Answer, type CommonOptions, ContentRefused, type ExternalAdapter, newProbeContent } from './adapter.ts'

const maxVersionLength = 100
const maxReasonLength = 300

type Deps = { adapter: ExternalAdapter; options: CommonOptions; log: Logger }

/** Calls an engine: bounded in time, repeated after a failure, and not at all while its breaker is open. */
export function makeEngineCalls({ adapter, options, log }: Deps) {
  const { name, timeoutMs, retries, checkMs } = options
  const latency = makeLatency()
  const counts = { scans: 0, failures: 0 }
  let version: string | undefined
  let lastAnswerAt = -Infinity
  let isChecking = false
  const breaker = makeBreaker({
    probe,
    onOpen: (reason) => log.error({ engine: name, reason }, 'An engine does not answer; scans do not wait for it'),
    onClose: () => log.info({ engine: name }, 'An engine answers again'),
  })
  const watch = setInterval(() => {
    if (!breaker.isOpen() && performance.now() - lastAnswerAt >= checkMs) void check()
  }, checkMs)
  watch.unref()
  void check()

  async function askOnce(content: Content, outer: AbortSignal, fileName: string, scanId: string): Promise<Answer> {
    const answer = await withinTime(timeoutMs, outer, (signal) => adapter.scan(content, { signal, fileName, scanId }))
    version = answer.version === undefined ? undefined : toCleanText(answer.version, maxVersionLength)
    lastAnswerAt = performance.now()
    return answer
  }

  async function probe() {
    await askOnce(newProbeContent(), neverAborted, 'probe.txt', randomUUID())
  }

  /** Finds out that an engine without work has died, and its version before the first scan. */
  async function check() {
    if (isChecking) return
    isChecking = true
    try {
      await probe()
      breaker.noteSuccess()
    } catch (error) {
      breaker.noteFailure(toReason(error))
    } finally {
      isChecking = false
    }
  }

  function checkBreaker() {
    if (breaker.isOpen()) throw new EngineDown(breaker.findFault() ?? 'it is tried again')
  }

  async function ask(content: Content, signal: AbortSignal, fileName: string): Promise<Answer> {
    const scanId = randomUUID()
    for (let attempt = 0; ; attempt++) {
      if (attempt > 0) checkBreaker()
      try {
        const answer = await askOnce(content, signal, fileName, scanId)
        breaker.noteSuccess()
        return answer
      } catch (error) {
        signal.throwIfAborted()
        counts.failures++
        if (error instanceof ContentRefused) throw error
        breaker.noteFailure(toReason(error))
        if (attempt >= retries) throw error
      }
    }
  }

  return {
    async ask(content: Content, signal: AbortSignal, fileName: string): Promise<Answer> {
      // A scan that does not reach the engine says nothing about its speed, and is not counted.
      checkBreaker()
      const startedAt = performance.now()
      try {
        return await ask(content, signal, fileName)
      } finally {
        counts.scans++
        latency.note(performance.now() - startedAt)
      }
    },
    findVersion: () => version,
    findHealth: (): EngineHealth => ({
      breaker: breaker.isOpen() ? 'open' : 'closed',
      fault: breaker.findFault(),
      scans: counts.scans,
      failures: counts.failures,
      ...latency.find(),
    }),
    async close() {
      clearInterval(watch)
      breaker.close()
      await adapter.close()
    },
  }
}

const neverAborted = new AbortController().signal

/** Ends the work after its time, also when the adapter does not notice the end of its signal. */
async function withinTime<T>(ms: number, outer: AbortSignal, work: (signal: AbortSignal) => Promise<T>): Promise<T> {
  outer.throwIfAborted()
  const controller = new AbortController()
  const { promise: ended, reject } = Promise.withResolvers<never>()
  const end = (error: unknown) => {
    reject(error)
    controller.abort(error)
  }
  const leave = () => end(outer.reason)
  const timer = startAwakeTimer(ms, () => end(new EngineDown(`no answer within ${ms} ms`)))
  outer.addEventListener('abort', leave, { once: true })
  try {
    return await Promise.race([work(controller.signal), ended])
  } finally {
    timer.stop()
    outer.removeEventListener('abort', leave)
  }
}

/** Text of a foreign engine goes into results and logs: it has no control characters and an end. */
export const toCleanText = (text: string, length: number) =>
  toPrintable(text.slice(0, length)).slice(0, length).toWellFormed().trim()

export const toReason = (error: unknown) => toCleanText((error as Error).message, maxReasonLength)

/** Failures in a row after which an engine is no longer asked by scans. */
const maxFailures = 3
/** Pause between two probes of an engine that does not answer. */
const probeEveryMs = 5000

type BreakerDeps = {
  /** Asks the engine for a harmless scan, and throws when it does not answer. */
  probe(): Promise<void>
  onOpen(reason: string): void
  onClose(): void
}

/**
 * A circuit breaker. After a few failures in a row it is open: scans fail without waiting for the engine, and the
 * service probes the engine at once and then every few seconds, until it answers. A scan that the content alone makes
 * fail opens it only for as long as one probe takes.
 */
function makeBreaker({ probe, onOpen, onClose }: BreakerDeps) {
  let failuresInRow = 0
  let fault: string | undefined
  let isOpen = false
  let isClosed = false
  let timer: NodeJS.Timeout | undefined

  function noteSuccess() {
    failuresInRow = 0
    fault = undefined
    if (!isOpen) return
    isOpen = false
    onClose()
  }

  function noteFailure(reason: string) {
    failuresInRow++
    fault = reason
    if (isOpen || isClosed || failuresInRow < maxFailures) return
    isOpen = true
    onOpen(reason)
    void tryAgain()
  }

  async function tryAgain() {
    try {
      await probe()
      noteSuccess()
    } catch (error) {
      fault = (error as Error).message
      if (isClosed) return
      timer = setTimeout(tryAgain, probeEveryMs)
      timer.unref()
    }
  }

  return {
    isOpen: () => isOpen,
    findFault: () => fault,
    noteSuccess,
    noteFailure,
    close() {
      isClosed = true
      clearTimeout(timer)
    },
  }
}

const keptScans = 1000

/** Remembers how long the last scans took. */
function makeLatency() {
  const recent: number[] = []
  let next = 0

  const findQuantile = (sorted: number[], part: number) =>
    sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * part))]

  return {
    note(ms: number) {
      recent[next] = ms
      next = (next + 1) % keptScans
    },
    find() {
      const sorted = recent.toSorted((a, b) => a - b)
      return { p50: findQuantile(sorted, 0.5), p99: findQuantile(sorted, 0.99) }
    },
  }
}
