import {
  AssayError,
  type Client,
  ConnectionFailed,
  type FileInput,
  Overloaded,
  RateLimited,
  type Scans,
} from '@assay/client'
import { wait } from '../wait.ts'
import { defaultWaitMs, type Kind } from './limits.ts'
import type { Outcome } from './outcome.ts'

export type SendDeps = {
  client: Client
  kind: Kind
  /** Set for background scans; `wait` for the verdict, or only print the id. */
  background: { wait: boolean; callbackUrl?: string } | undefined
  timeoutMs?: number
  signal: AbortSignal
  /** Prints a message for the user. */
  notice(message: string): void
}

export type SendInput = {
  input: FileInput
  name: string | undefined
  /** Whether the content is over the limit of a synchronous scan. */
  isLarge: boolean
  onSent(bytes: number): void
}

/** Contents up to this size, with their form, stay below the 64 KB up to which the service has a fast path. */
const maxFastBytes = 60 * 1024

/** Sends content to the service and returns the outcome, waiting for rate limits and for background scans. */
export function makeSendContent({ client, kind, background, timeoutMs, signal, notice }: SendDeps) {
  const scans: Scans = kind === 'malware' ? client.malware : client.nsfw.images
  const waitForRateLimit = makeRateLimitWait({ signal, notice })
  const options = { signal, ...(timeoutMs !== undefined && { timeoutMs }) }
  const callbackUrl = background?.callbackUrl
  const submitOptions = { ...options, ...(callbackUrl !== undefined && { callbackUrl }) }

  async function waitForResult({ id, meta }: Awaited<ReturnType<Scans['submitFile']>>): Promise<Outcome> {
    if (background !== undefined && !background.wait) return { kind: 'submitted', id, meta }
    try {
      const result = await waitForRateLimit(() => scans.waitFor(id, { timeoutMs: defaultWaitMs, ...options }))
      return { kind: 'scanned', result, meta: result.meta }
    } catch (error) {
      // The scan continues after an interrupt, and the user can fetch its result by the id.
      if (signal.aborted) return { kind: 'submitted', id }
      throw error
    }
  }

  return {
    async sendFile({ input, name, isLarge, onSent }: SendInput): Promise<Outcome> {
      // A stream cannot be sent a second time after a rate limit.
      const isRepeatable = typeof input === 'string' || Buffer.isBuffer(input)
      const send = isRepeatable ? waitForRateLimit : <T>(call: () => Promise<T>) => call()
      const sendOptions = {
        ...(name !== undefined && { fileName: name }),
        onProgress: ({ sent }: { sent: number }) => onSent(sent),
      }
      if (background !== undefined || isLarge) {
        return await waitForResult(await send(() => scans.submitFile(input, { ...submitOptions, ...sendOptions })))
      }
      const scan = (key: object) => scans.scanFile(input, { ...options, ...sendOptions, ...key })
      const isFast = kind === 'malware' && Buffer.isBuffer(input) && input.length <= maxFastBytes
      const result = await send(() => (isFast ? scanWithoutKey(scan) : scan({})))
      return { kind: 'scanned', result, meta: result.meta }
    },

    async sendUrl(url: string): Promise<Outcome> {
      if (background !== undefined) {
        return await waitForResult(await waitForRateLimit(() => scans.submitUrl(url, submitOptions)))
      }
      const result = await waitForRateLimit(() => scans.scanUrl(url, options))
      return { kind: 'scanned', result, meta: result.meta }
    },
  }
}

/**
 * Scans without an idempotency key, for which the service queries its database once instead of three times. After a
 * broken connection the scan is repeated with a key; if the first one was processed, the file is charged twice.
 */
async function scanWithoutKey<T>(scan: (key: object) => Promise<T>): Promise<T> {
  try {
    return await scan({ idempotencyKey: null })
  } catch (error) {
    const isUnknown =
      error instanceof ConnectionFailed || (error instanceof AssayError && [502, 504].includes(error.status ?? 0))
    if (isUnknown) return await scan({})
    throw error
  }
}

/** A longer Retry-After is an error for the user to decide on. */
const maxPauseSeconds = 600
const maxTries = 1000

/**
 * Repeats a call after the seconds in Retry-After when the service reports a rate limit or an overload. All calls wait
 * together, so that a tree of files takes as long as the rate limit of its account requires.
 */
function makeRateLimitWait({ signal, notice }: Pick<SendDeps, 'signal' | 'notice'>) {
  let pausedUntil = 0
  return async function waitForRateLimit<T>(call: () => Promise<T>): Promise<T> {
    for (let tries = 1; ; tries++) {
      await wait(pausedUntil - Date.now(), signal)
      try {
        return await call()
      } catch (error) {
        if (!(error instanceof RateLimited || error instanceof Overloaded)) throw error
        // Databases that are missing come back by work of the operator, not by waiting.
        if (error.problem?.type?.endsWith('/problems/degraded')) throw error
        const { retryAfter } = error
        const canWait = retryAfter !== undefined && retryAfter <= maxPauseSeconds
        if (!canWait || tries === maxTries || signal.aborted) throw error
        if (pausedUntil < Date.now()) {
          const reason = error instanceof RateLimited ? 'The rate limit is reached' : 'The service is overloaded'
          notice(`${reason}. Continuing in ${Math.ceil(retryAfter)} s.`)
        }
        pausedUntil = Math.max(pausedUntil, Date.now() + retryAfter * 1000)
      }
    }
  }
}
