import { openDeadline, wait } from './deadline.ts'
import { ValidationFailed } from './errors.ts'
import { isCompleted, type ScanResult, type WithMeta, withSignals } from './results.ts'

export type WaitOptions = {
  signal?: AbortSignal
  timeoutMs?: number
  /** Called each time that the scan is still pending. */
  onPoll?(result: WithMeta<ScanResult>): void
}

type GetResult = (
  id: string,
  options: { signal: AbortSignal; timeoutMs: number },
  query: string,
) => Promise<WithMeta<ScanResult>>

const defaultTimeoutMs = 300_000
/** Longest wait that the service supports. */
const maxWaitSeconds = 30
const firstPauseMs = 250
const maxPauseMs = 10_000

/** Asks the service to hold its response until the scan completes, and polls a service that does not support that. */
export function makeWaitFor(getResult: GetResult) {
  return async (id: string, { signal, timeoutMs = defaultTimeoutMs, onPoll }: WaitOptions = {}) => {
    const toMessage = () =>
      `The result of ${id} was not available within ${timeoutMs / 1000} s. The scan continues; fetch it later.`
    const deadline = openDeadline(signal, timeoutMs, toMessage)
    let supportsWait = true
    let pauseMs = firstPauseMs
    try {
      for (;;) {
        const askedAt = Date.now()
        const seconds = Math.max(0, Math.min(maxWaitSeconds, Math.floor(deadline.leftMs() / 1000)))
        const request = getResult(
          id,
          { signal: deadline.signal, timeoutMs: timeoutMs + 1000 },
          toQuery(supportsWait, seconds),
        )
        const result = await request.catch((error) => {
          if (!supportsWait || !isWaitRejected(error)) throw error
          supportsWait = false
          return undefined
        })
        if (result === undefined) continue
        if (isCompleted(result)) return withSignals(result)
        onPoll?.(result)
        // The service answered without waiting, so pause here before the next request.
        const tookMs = Date.now() - askedAt
        if (tookMs >= (seconds * 1000) / 2 && seconds > 0) continue
        await wait(pauseMs, deadline.signal)
        pauseMs = Math.min(maxPauseMs, pauseMs * 2)
      }
    } finally {
      deadline.close()
    }
  }
}

const toQuery = (supportsWait: boolean, seconds: number) => (supportsWait && seconds > 0 ? `?wait=${seconds}` : '')

const isWaitRejected = (error: unknown) => error instanceof ValidationFailed && 'wait' in error.errors
