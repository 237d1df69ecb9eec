import { setTimeout as pause } from 'node:timers/promises'
import { StorageUnavailable } from '../../domain/ports/content-store.ts'
import type { Logger } from '../../runtime/logger.ts'

/** `missing`: the object does not exist. `refused`: a retry would not help. `failed`, `lost`: a retry may help. */
export type CallOutcome = 'ok' | 'missing' | 'refused' | 'failed' | 'lost'

type ObserveCall = (seconds: number, call: string, outcome: CallOutcome) => void

export type AttemptOptions = {
  /** The time limit of each attempt. */
  attemptMs: number
  /** Aborted when the answer is not needed any more. */
  signal?: AbortSignal | undefined
  /** Makes one attempt only, because the caller calls again later. */
  once?: true
}

export type AttemptDeps = { observe: ObserveCall; log: Logger; pausesMs?: readonly number[] | undefined }

const defaultPausesMs = [200, 500, 1000, 2000, 4000]
/** The latest start of an attempt, because a caller waits for the answer. */
const lastAttemptMs = 20_000

/**
 * Repeats calls while the store is unavailable. A call that fails throws the store's own error when the object does not
 * exist, and `StorageUnavailable` otherwise. The log gets one line when the store fails and one when it works again.
 */
export function makeAttempts({ observe, log, pausesMs = defaultPausesMs }: AttemptDeps) {
  let isFailing = false

  return async function attempt<T>(
    call: string,
    run: (signal: AbortSignal) => Promise<T>,
    { attemptMs, signal, once }: AttemptOptions,
  ): Promise<T> {
    const endsAt = performance.now() + lastAttemptMs
    for (let tries = 0; ; tries++) {
      signal?.throwIfAborted()
      const startedAt = performance.now()
      // AbortSignal.timeout keeps its timer until it fires: thousands of calls would leave thousands of timers.
      const limit = new AbortController()
      const timer = setTimeout(() => limit.abort(new Error(`No answer within ${attemptMs} ms`)), attemptMs)
      try {
        const answer = await run(signal === undefined ? limit.signal : AbortSignal.any([limit.signal, signal]))
        observe((performance.now() - startedAt) / 1000, call, 'ok')
        logChange(undefined)
        return answer
      } catch (error) {
        signal?.throwIfAborted()
        const outcome = toOutcome(error)
        observe((performance.now() - startedAt) / 1000, call, outcome)
        if (outcome === 'missing') throw error
        logChange(error)
        const pauseMs = (pausesMs[tries] ?? Number.POSITIVE_INFINITY) * (0.5 + Math.random())
        if (once || outcome === 'refused' || performance.now() + pauseMs > endsAt) {
          const message = `${call} failed at the content store: ${(error as Error).message}`
          throw new StorageUnavailable(message, { cause: error })
        }
        await pause(pauseMs, undefined, signal === undefined ? {} : { signal })
      } finally {
        clearTimeout(timer)
      }
    }
  }

  function logChange(error: unknown) {
    if (error !== undefined && !isFailing) log.warn({ err: error }, 'the content store fails; calls are repeated')
    if (error === undefined && isFailing) log.info('the content store works again')
    isFailing = error !== undefined
  }
}

type StoreError = Error & { $metadata?: { httpStatusCode?: number } }

/**
 * Errors that a retry can cure, although some stores send them with status 400 or 403. After `RequestTimeTooSkewed` the
 * SDK sets its clock by the answer.
 */
const transientNames = new Set([
  'RequestTimeout',
  'RequestTimeTooSkewed',
  'IncompleteBody',
  'SlowDown',
  'ThrottlingException',
])

function toOutcome(error: unknown): CallOutcome {
  const { name, $metadata } = error as StoreError
  const status = $metadata?.httpStatusCode
  if (name === 'CredentialsProviderError') return 'refused'
  if (status === undefined) return 'lost'
  if (status >= 500 || status === 429 || status === 408 || status === 409 || transientNames.has(name)) return 'failed'
  if (status === 416 || (status === 404 && name !== 'NoSuchBucket')) return 'missing'
  return status < 300 ? 'failed' : 'refused'
}

/** Explains to the operator which setting is wrong; undefined when the store is only unavailable. */
export function findStoreMistake(error: unknown, place: { bucket: string; region: string }): string | undefined {
  const { name, message, $metadata } = ((error as Error).cause ?? error) as StoreError
  const status = $metadata?.httpStatusCode
  if (name === 'CredentialsProviderError') {
    return 'No credentials for the content store were found. Set ASSAY_S3_ACCESS_KEY and ASSAY_S3_SECRET_KEY.'
  }
  if (status === undefined || status >= 500 || status === 429 || status < 300) return undefined
  if (name === 'NoSuchBucket' || status === 404) {
    return `The content store has no bucket ${place.bucket}. Create it, or correct ASSAY_BLOBS.`
  }
  if (name === 'AuthorizationHeaderMalformed' || name === 'PermanentRedirect' || status === 301) {
    return `The content store does not accept the region ${place.region} for the bucket ${place.bucket}: ${message}. Correct it in ASSAY_BLOBS.`
  }
  if (name === 'AccessDenied') {
    return `The content store does not let these credentials use the bucket ${place.bucket}. Give them the rights that docs/operating.md lists.`
  }
  if (status === 403 || status === 401) {
    return `The content store refuses the credentials (${name}). Check ASSAY_S3_ACCESS_KEY and ASSAY_S3_SECRET_KEY.`
  }
  return `The content store refuses the settings in ASSAY_BLOBS: ${name}, ${message}.`
}
