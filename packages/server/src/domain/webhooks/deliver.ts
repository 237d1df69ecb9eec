import type { Clock } from '../ports/clock.ts'
import type { Attempt, ClaimedDelivery, DeliveryStore, NextDeliveryState } from '../ports/delivery-store.ts'
import type { WebhookResponse, WebhookSender } from '../ports/webhook-sender.ts'
import { keepTrying } from '../retry.ts'
import { toAnswerText } from './answer-text.ts'
import { decideNextState, defaultRetryMs } from './schedule.ts'
import { toSignatureHeaders } from './signature.ts'

/** An attempt as a whole. Leases must be longer. */
export const attemptMs = 15_000

/** An endpoint that has only failed for so long gets no more until somebody looks at it. */
const pauseEndpointAfterMs = 5 * 24 * 3_600_000

export type Delivered = {
  attempt: Attempt
  outcome: NextDeliveryState
  /** False when somebody else had the delivery by then: what came of it is his to say. */
  isRecorded: boolean
  /** Why it could not be sent, when that was not the receiver's fault. */
  fault: unknown
}

/** Makes one attempt at a claimed delivery and records it. Throws only when it cannot be recorded, or for a fault of ours. */
export function makeDeliver(deps: {
  sender: WebhookSender
  store: Pick<DeliveryStore, 'recordAttempt'>
  clock: Clock
  retryMs?: readonly number[]
  random?: () => number
  attemptMs?: number
  pauseAfterMs?: number
}) {
  const { sender, store, clock, retryMs = defaultRetryMs, random = Math.random } = deps
  const totalMs = deps.attemptMs ?? attemptMs
  const pauseAfterMs = deps.pauseAfterMs ?? pauseEndpointAfterMs

  return async function deliver(claimed: ClaimedDelivery): Promise<Delivered> {
    const at = clock.now()
    const startedAt = performance.now()
    const body = Buffer.from(claimed.body)
    const headers = toSignatureHeaders({ id: claimed.id, body, secrets: claimed.secrets, at })
    const answer = await sender.send({ url: claimed.url, headers, body, totalMs })
    const durationMs = Math.round(performance.now() - startedAt)
    const attempt = { at, status: answer.status, durationMs, answer: toLogText(answer) }
    const outcome = decideNextState(retryMs, {
      attempts: claimed.attempts,
      answer: { status: answer.status, retryAfter: answer.status === null ? undefined : answer.retryAfter },
      now: clock.now(),
      random: random(),
    })
    // What is not recorded is delivered again when the lease is over.
    const isRecorded = await keepTrying(() => store.recordAttempt(claimed, attempt, outcome, pauseAfterMs))
    return { attempt, outcome, isRecorded, fault: answer.status === null ? answer.fault : undefined }
  }
}

export type Deliver = ReturnType<typeof makeDeliver>

function toLogText(answer: WebhookResponse): string {
  if (answer.status === null) return answer.reason
  const text = toAnswerText(answer.beginning)
  return text === '' && answer.status >= 300 && answer.status <= 399 ? 'Redirects are not followed.' : text
}
