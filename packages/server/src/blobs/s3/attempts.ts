import { setTimeout as pause } from 'node:timers/promises'
import { StorageUnavailable } from '../../domain/ports/content-store.ts'
import type { Logger } from '../../runtime/logger.ts'

/** `missing`: there is no such thing. `refused`: it will not help to ask again. `failed`, `lost`: it may. */
export type CallOutcome = 'ok' | 'missing' | 'refused' | 'failed' | 'lost'

type ObserveCall = (call: string, outcome: CallOutcome, seconds: number) => void

export type Attempts = {
  /** One attempt ends after this. */
  attemptMs: number
  /** Whoever does not need the answer any more. */
  signal?: AbortSignal | undefined
  /** Once is enough: the caller asks again later. */
  once?: true
}

export type AttemptDeps = { observe: ObserveCall; log: Logger; pausesMs?: readonly number[] | undefined }

const defaultPausesMs = [200, 500, 1000, 2000, 4000]
/** No try begins later: somebody waits for the answer. */
const lastTryMs = 20_000

/**
 * Calls to the store, tried again while it is away. In the end a call is answered, or throws: what the store said when
 * something is not there, `StorageUnavailable` for everything else. That the store is away is logged once, not for each call.
 */
export function makeAttempts({ observe, log, pausesMs = defaultPausesMs }: AttemptDeps) {
  let isAway = false

  return async function attempt<T>(
    call: string,
    run: (signal: AbortSignal) => Promise<T>,
    { attemptMs, signal, once }: Attempts,
  ): Promise<T> {
    const endsAt = performance.now() + lastTryMs
    for (let tries = 0; ; tries++) {
      signal?.throwIfAborted()
      const startedAt = performance.now()
      // Not AbortSignal.timeout: its timers live until they fire, and there may be thousands of calls in that time.
      const limit = new AbortController()
      const timer = setTimeout(() => limit.abort(new Error(`No answer within ${attemptMs} ms`)), attemptMs)
      try {
        const answer = await run(signal === undefined ? limit.signal : AbortSignal.any([limit.signal, signal]))
        observe(call, 'ok', (performance.now() - startedAt) / 1000)
        note(undefined)
        return answer
      } catch (error) {
        signal?.throwIfAborted()
        const outcome = toOutcome(error)
        observe(call, outcome, (performance.now() - startedAt) / 1000)
        if (outcome === 'missing') throw error
        note(error)
        const pauseMs = (pausesMs[tries] ?? Number.POSITIVE_INFINITY) * (0.5 + Math.random())
        if (once || outcome === 'refused' || performance.now() + pauseMs > endsAt) {
          throw new StorageUnavailable(`The content store did not do ${call}: ${(error as Error).message}`, {
            cause: error,
          })
        }
        await pause(pauseMs, undefined, signal === undefined ? {} : { signal })
      } finally {
        clearTimeout(timer)
      }
    }
  }

  function note(error: unknown) {
    if (error !== undefined && !isAway) log.warn({ err: error }, 'the content store fails; calls are tried again')
    if (error === undefined && isAway) log.info('the content store works again')
    isAway = error !== undefined
  }
}

type StoreError = Error & { $metadata?: { httpStatusCode?: number } }

/** Some say so with a status of 400 or 403. The SDK sets its clock by the answer, so that a second try can succeed. */
const passing = new Set(['RequestTimeout', 'RequestTimeTooSkewed', 'IncompleteBody', 'SlowDown', 'ThrottlingException'])

function toOutcome(error: unknown): CallOutcome {
  const { name, $metadata } = error as StoreError
  const status = $metadata?.httpStatusCode
  if (name === 'CredentialsProviderError') return 'refused'
  if (status === undefined) return 'lost'
  if (status >= 500 || status === 429 || status === 408 || status === 409 || passing.has(name)) return 'failed'
  if (status === 416 || (status === 404 && name !== 'NoSuchBucket')) return 'missing'
  return status < 300 ? 'failed' : 'refused'
}
