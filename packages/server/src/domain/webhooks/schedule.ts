import type { NextDeliveryState } from '../ports/delivery-store.ts'

const second = 1000
const minute = 60 * second
const hour = 60 * minute

/** The pause after each failed attempt. The last attempt follows the last pause. */
export const defaultRetryMs: readonly number[] = [
  5 * second,
  5 * minute,
  30 * minute,
  2 * hour,
  5 * hour,
  10 * hour,
  10 * hour,
]

const jitter = 0.2
const minPauseAfter429Ms = minute
const tooManyRequestsStatus = 429
const goneStatus = 410

/** The parts of a response that decide about a retry. The status is null when there was no response. */
type Answer = { status: number | null; retryAfter: string | undefined }

type FinishedAttempt = {
  /** Attempts before this one. */
  attempts: number
  answer: Answer
  /** The time, which a date in Retry-After is compared with. */
  now: Date
  /** A random number from 0 to 1, for the jitter. */
  random: number
}

/** Decides whether to try again, and after which pause. A redirect is a failure: the account did not name the other address. */
export function decideNextState(
  retryMs: readonly number[],
  { attempts, answer, now, random }: FinishedAttempt,
): NextDeliveryState {
  if (isSuccess(answer.status)) return { state: 'delivered' }
  if (answer.status === goneStatus) return { state: 'stopped' }
  const stepMs = retryMs[attempts]
  if (stepMs === undefined) return { state: 'dead' }
  const pauseMs = Math.max(
    stepMs * (1 - jitter + 2 * jitter * random),
    Math.min(findRetryAfterMs(answer.retryAfter, now) ?? 0, 2 * stepMs),
    answer.status === tooManyRequestsStatus ? minPauseAfter429Ms : 0,
  )
  return { state: 'pending', pauseMs: Math.round(pauseMs) }
}

export const isSuccess = (status: number | null): boolean => status !== null && status >= 200 && status <= 299

/** Reads Retry-After: seconds, or one of the three date formats of HTTP. */
function findRetryAfterMs(text: string | undefined, now: Date): number | undefined {
  const value = text?.trim() ?? ''
  if (/^\d{1,12}$/.test(value)) return Number(value) * second
  // Date.parse alone would accept almost any text.
  if (!/^[A-Z][a-z]{2,8},? [\w :-]{15,25}$/.test(value)) return undefined
  // The format of asctime has no zone and would be read as local time.
  const at = Date.parse(value.endsWith('GMT') ? value : `${value} GMT`)
  return Number.isNaN(at) ? undefined : at - now.getTime()
}
