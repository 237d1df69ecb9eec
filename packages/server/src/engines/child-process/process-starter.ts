import type { Logger } from '../../runtime/logger.ts'
import type { Child } from './start-child.ts'

const firstRetryMs = 500
const lastRetryMs = 60_000

/** Starts processes for a pool, and pauses after a failure, longer each time, so that a broken engine costs little. */
export function makeProcessStarter(deps: {
  name: string
  start(signal: AbortSignal): Promise<Child>
  /** Ends starts and retries. */
  signal: AbortSignal
  log: Logger
  onStarted(child: Child): void
  onFailed(): void
  onRetry(): void
}) {
  const { name, signal, log } = deps
  const starting = new Set<Promise<void>>()
  let failures = 0
  let fault: unknown
  let retry: NodeJS.Timeout | undefined

  function fail(error: unknown) {
    if (signal.aborted) return
    failures++
    fault = error
    const retryMs = Math.min(firstRetryMs * 2 ** (failures - 1), lastRetryMs)
    log.error({ err: error, retryMs }, `the ${name} could not be started`)
    clearTimeout(retry)
    retry = setTimeout(() => {
      retry = undefined
      deps.onRetry()
    }, retryMs).unref()
    deps.onFailed()
  }

  return {
    startOne() {
      const attempt: Promise<void> = deps
        .start(signal)
        .finally(() => starting.delete(attempt))
        .then(deps.onStarted, fail)
      starting.add(attempt)
    },
    /** Counts a process that died before it did any work like one that did not start. */
    fail,
    recordSuccess() {
      failures = 0
    },
    count: () => starting.size,
    isPaused: () => retry !== undefined,
    hasFailed: () => failures > 0,
    getFault: () => fault,
    throwIfFailed() {
      if (failures > 0) throw fault
    },
    /** Resolves when no start is under way. */
    waitForStarts: () => Promise.all(starting),
    stop: () => clearTimeout(retry),
  }
}
