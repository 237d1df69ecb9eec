import { openDeadline, wait } from './deadline.ts'
import { ValidationFailed } from './errors.ts'
import type { ScanResult, WithMeta } from './results.ts'

export type WaitOptions = {
  signal?: AbortSignal
  timeoutMs?: number
  /** Is told each time that the job is still pending. */
  onPoll?(result: WithMeta<ScanResult>): void
}

type GetResult = (
  id: string,
  options: { signal: AbortSignal; timeoutMs: number },
  query: string,
) => Promise<WithMeta<ScanResult>>

const defaultTimeoutMs = 300_000
/** The service waits no longer than this. */
const maxWaitSeconds = 30
const firstPauseMs = 250
const maxPauseMs = 10_000

/** Asks the service to answer when the job is settled. One that does not know how is asked again and again. */
export function makeWaitFor(getResult: GetResult) {
  return async (id: string, { signal, timeoutMs = defaultTimeoutMs, onPoll }: WaitOptions = {}) => {
    const toLate = () =>
      `The result of ${id} was not there within ${timeoutMs / 1000} s. The scan goes on; fetch it later.`
    const deadline = openDeadline(signal, timeoutMs, toLate)
    let canWait = true
    let pauseMs = firstPauseMs
    try {
      for (;;) {
        const askedAt = Date.now()
        const seconds = Math.max(0, Math.min(maxWaitSeconds, Math.floor(deadline.leftMs() / 1000)))
        const asking = getResult(
          id,
          { signal: deadline.signal, timeoutMs: timeoutMs + 1000 },
          toQuery(canWait, seconds),
        )
        const result = await asking.catch((error) => {
          if (!canWait || !isRefusalToWait(error)) throw error
          canWait = false
          return undefined
        })
        if (result === undefined) continue
        if (result.status !== 'pending') return result
        onPoll?.(result)
        // It did not wait as it was asked to, so the waiting is ours.
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

const toQuery = (canWait: boolean, seconds: number) => (canWait && seconds > 0 ? `?wait=${seconds}` : '')

const isRefusalToWait = (error: unknown) => error instanceof ValidationFailed && 'wait' in error.errors
