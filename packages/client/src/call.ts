import { findRetryAfter, toError } from './answer.ts'
import { type Deadline, untilAborted, wait } from './deadline.ts'
import { ConnectionFailed } from './errors.ts'
import type { Incoming, Outgoing, Transport } from './transport/transport.ts'

export type Answered = Incoming & { attempts: number }

/** Longer ones are the caller's to plan: they get the error, with the number of seconds. */
const maxRetryAfterMs = 60_000
const maxPauseMs = 10_000
/** 502 and 504 are how a proxy says that the connection behind it failed. */
const passing = [429, 502, 503, 504]

/**
 * Sends until there is an answer that lasts. Nothing is done twice by that: what is not a GET has an idempotency key, or
 * is sent again only when the service has refused it.
 * Content that can be read only once is not sent again after its first byte was.
 */
export async function call(
  send: Transport,
  outgoing: Outgoing,
  { retries, deadline }: { retries: number; deadline: Deadline },
): Promise<Answered> {
  for (let attempts = 1; ; attempts++) {
    const attempt = await tryOnce(send, outgoing, deadline.signal)
    if ('text' in attempt && attempt.status >= 200 && attempt.status < 300) return { ...attempt, attempts }
    const pauseMs = mayBeDone(attempt, outgoing) ? undefined : toPauseMs(attempt, attempts)
    const mayRepeat =
      attempts <= retries && canSendAgain(outgoing) && pauseMs !== undefined && pauseMs < deadline.leftMs()
    if (!mayRepeat) throw 'text' in attempt ? toError(attempt, attempts, outgoing.url) : attempt
    await wait(pauseMs, deadline.signal)
  }
}

async function tryOnce(send: Transport, outgoing: Outgoing, signal: AbortSignal): Promise<Incoming | ConnectionFailed> {
  if (signal.aborted) throw signal.reason
  try {
    return await untilAborted(send(outgoing, signal), signal)
  } catch (error) {
    if (signal.aborted) throw signal.reason
    if (error instanceof ConnectionFailed) return error
    throw error
  }
}

const canSendAgain = ({ body }: Outgoing) => typeof body !== 'object' || body.content.canRead()

/** Nobody knows whether it was done, and without a key it would be done again. */
const mayBeDone = (attempt: Incoming | ConnectionFailed, { method, headers }: Outgoing) =>
  method !== 'GET' &&
  !('Idempotency-Key' in headers) &&
  !('status' in attempt && (attempt.status === 429 || attempt.status === 503))

/** Undefined: another attempt would end the same way, or come too soon. */
function toPauseMs(attempt: Incoming | ConnectionFailed, attempts: number): number | undefined {
  // Spread, so that those who failed together do not come back together.
  const backOffMs = Math.min(maxPauseMs, 250 * 2 ** (attempts - 1)) * (0.75 + Math.random() / 2)
  if (attempt instanceof ConnectionFailed) return backOffMs
  if (!passing.includes(attempt.status)) return undefined
  const seconds = findRetryAfter(attempt)
  if (seconds === undefined) return attempt.status === 429 ? undefined : backOffMs
  return seconds * 1000 > maxRetryAfterMs ? undefined : Math.max(seconds * 1000, 0)
}
