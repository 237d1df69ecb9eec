import { type Deadline, untilAborted, wait } from './deadline.ts'
import { ConnectionFailed } from './errors.ts'
import { findRetryAfter, toError } from './response.ts'
import type { HttpRequest, HttpResponse, Transport } from './transport/transport.ts'

/** A longer Retry-After is left to the caller, who gets the error with the number of seconds. */
const maxRetryAfterMs = 60_000
const maxPauseMs = 10_000
/** Statuses worth a retry. A proxy answers 502 or 504 when the connection behind it failed. */
const transientStatuses = [429, 502, 503, 504]

/**
 * Sends a request until it succeeds or another attempt is pointless. A retry never repeats work: a request other than
 * GET has an idempotency key, or is sent again only if the service rejected it. Content that can be read only once is
 * not sent again after its first byte was read.
 */
export async function call(
  send: Transport,
  request: HttpRequest,
  { retries, deadline }: { retries: number; deadline: Deadline },
): Promise<HttpResponse & { attempts: number }> {
  for (let attempts = 1; ; attempts++) {
    const outcome = await sendOnce(send, request, deadline.signal)
    if ('text' in outcome && outcome.status >= 200 && outcome.status < 300) return { ...outcome, attempts }
    const pauseMs = mayRepeatWork(outcome, request) ? undefined : toPauseMs(outcome, attempts)
    const canRetry =
      attempts <= retries && canSendAgain(request) && pauseMs !== undefined && pauseMs < deadline.leftMs()
    if (!canRetry) throw 'text' in outcome ? toError(outcome, attempts, request.url) : outcome
    await wait(pauseMs, deadline.signal)
  }
}

async function sendOnce(
  send: Transport,
  request: HttpRequest,
  signal: AbortSignal,
): Promise<HttpResponse | ConnectionFailed> {
  if (signal.aborted) throw signal.reason
  try {
    return await untilAborted(send(request, signal), signal)
  } catch (error) {
    if (signal.aborted) throw signal.reason
    if (error instanceof ConnectionFailed) return error
    throw error
  }
}

const canSendAgain = ({ body }: HttpRequest) => typeof body !== 'object' || body.content.canRead()

/** Whether the service may have processed the request, so that without an idempotency key a retry would repeat it. */
const mayRepeatWork = (outcome: HttpResponse | ConnectionFailed, { method, headers }: HttpRequest) =>
  method !== 'GET' &&
  !('Idempotency-Key' in headers) &&
  !('status' in outcome && (outcome.status === 429 || outcome.status === 503))

/** Undefined if another attempt would fail the same way, or should wait longer than this client waits. */
function toPauseMs(outcome: HttpResponse | ConnectionFailed, attempts: number): number | undefined {
  // A random part keeps clients that failed together from retrying together.
  const backOffMs = Math.min(maxPauseMs, 250 * 2 ** (attempts - 1)) * (0.75 + Math.random() / 2)
  if (outcome instanceof ConnectionFailed) return backOffMs
  if (!transientStatuses.includes(outcome.status)) return undefined
  const seconds = findRetryAfter(outcome)
  if (seconds === undefined) return outcome.status === 429 ? undefined : backOffMs
  return seconds * 1000 > maxRetryAfterMs ? undefined : seconds * 1000
}
