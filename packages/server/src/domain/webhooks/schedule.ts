import type { NextDeliveryState } from '../ports/delivery-store.ts'

const second = 1000
const minute = 60 * second
const hour = 60 * minute

/** The pause after each failed attempt. One more attempt than pauses is made. */
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
const minAfterTooManyMs = minute
const tooManyRequests = 429
const gone = 410

/** What a receiver answered, as far as it decides what comes next. The status is null when there was no answer. */
type Answer = { status: number | null; retryAfter: string | undefined }

type Tried = {
  /** Before the one that was answered. */
  attempts: number
  answer: Answer
  now: Date
  /** From 0 up to 1. */
  random: number
}

/** Redirects are failures like any other: whoever answers elsewhere was not named by the account. */
export function decideNextState(
  retryMs: readonly number[],
  { attempts, answer, now, random }: Tried,
): NextDeliveryState {
  if (isSuccess(answer.status)) return { state: 'delivered' }
  if (answer.status === gone) return { state: 'stopped' }
  const stepMs = retryMs[attempts]
  if (stepMs === undefined) return { state: 'dead' }
  const pauseMs = Math.max(
    stepMs * (1 - jitter + 2 * jitter * random),
    Math.min(findRetryAfterMs(answer.retryAfter, now) ?? 0, 2 * stepMs),
    answer.status === tooManyRequests ? minAfterTooManyMs : 0,
  )
  return { state: 'pending', nextAt: new Date(now.getTime() + Math.round(pauseMs)) }
}

export const isSuccess = (status: number | null): boolean => status !== null && status >= 200 && status <= 299

/** Seconds, or one of the three forms of a date that HTTP knows. */
function findRetryAfterMs(text: string | undefined, now: Date): number | undefined {
  const value = text?.trim() ?? ''
  if (/^\d{1,12}$/.test(value)) return Number(value) * second
  // Date.parse alone takes almost anything for a date.
  if (!/^[A-Z][a-z]{2,8},? [\w :-]{15,25}$/.test(value)) return undefined
  // The form of asctime names no zone and would be read as local time.
  const at = Date.parse(value.endsWith('GMT') ? value : `${value} GMT`)
  return Number.isNaN(at) ? undefined : at - now.getTime()
}
