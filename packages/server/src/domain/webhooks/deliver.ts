import { hash } from 'node:crypto'
import type { Clock } from '../ports/clock.ts'
import type { Attempt, ClaimedDelivery, DeliveryStore, NextDeliveryState } from '../ports/delivery-store.ts'
import type { WebhookResponse, WebhookSender } from '../ports/webhook-sender.ts'
import { retryBriefly } from '../retry.ts'
import { newScanId, toScanResult } from '../scans/scan.ts'
import { decideNextState, defaultRetryMs } from './schedule.ts'
import { toSignatureHeaders } from './signature.ts'

/** The time limit of an attempt. The leases of deliveries must be longer. */
const attemptMs = 15_000

/** An endpoint that has failed for this long without a success is paused until somebody resumes it. */
const pauseEndpointAfterMs = 5 * 24 * 3_600_000

export type AttemptResult = {
  attempt: Attempt
  outcome: NextDeliveryState
  /** False when another process had claimed the delivery by then and records its own attempt. */
  isRecorded: boolean
  /** The error when this service failed, not the receiver. */
  fault: unknown
}

/** Makes one attempt at a claimed delivery and records it. Throws only when the attempt cannot be recorded. */
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

  return async function deliver(claimed: ClaimedDelivery): Promise<AttemptResult> {
    const at = clock.now()
    const startedAt = performance.now()
    const body = Buffer.from(claimed.body)
    const answer = await send(claimed, body, at)
    const durationMs = Math.round(performance.now() - startedAt)
    const attempt = { status: answer.status, durationMs, answer: toLogText(answer) }
    const outcome = decideNextState(retryMs, {
      attempts: claimed.attempts,
      answer: { status: answer.status, retryAfter: answer.status === null ? undefined : answer.retryAfter },
      now: clock.now(),
      random: random(),
    })
    // A delivery whose attempt is not recorded is sent again when its lease ends.
    const isRecorded = await retryBriefly(() => store.recordAttempt(claimed, attempt, outcome, pauseAfterMs))
    return { attempt, outcome, isRecorded, fault: answer.status === null ? answer.fault : undefined }
  }

  /** A result is never sent without a signature. */
  async function send(claimed: ClaimedDelivery, body: Buffer, at: Date): Promise<WebhookResponse> {
    const { id, url, secrets, attempts } = claimed
    if (secrets.length === 0) return { status: null, reason: noSecret, fault: new Error(noSecret) }
    return sender.send({ url, headers: toSignatureHeaders({ id, body, secrets, attempts, at }), body, totalMs })
  }
}

const noSecret = 'The webhook secret of the account cannot be opened.'

export type Deliver = ReturnType<typeof makeDeliver>

function toLogText(answer: WebhookResponse): string {
  if (answer.status === null) return answer.reason
  const text = toAnswerText(answer.beginning)
  return text === '' && answer.status >= 300 && answer.status <= 399 ? 'Redirects are not followed.' : text
}

export type SampleResult = {
  status: number | null
  durationMs: number
  /** The beginning of the response, or the reason why there is none. */
  answer: string
  /** False if the receiver responded from an address that is not public. */
  isPublic: boolean
  headers: Record<string, string>
  body: string
}

/** Sends a sample result, signed like a real delivery, and records nothing. */
export async function sendSample(
  deps: { sender: WebhookSender; clock: Clock },
  { url, secrets }: { url: string; secrets: readonly string[] },
): Promise<SampleResult> {
  const at = deps.clock.now()
  const startedAt = performance.now()
  const body = newSampleBody(at)
  const bytes = Buffer.from(body)
  const headers = deps.sender.toHeaders(
    toSignatureHeaders({ id: newScanId(at), body: bytes, secrets, attempts: 0, at }),
  )
  const answer = await deps.sender.send({ url, headers, body: bytes, totalMs: attemptMs })
  const durationMs = Math.round(performance.now() - startedAt)
  const text = answer.status === null ? answer.reason : toAnswerText(answer.beginning)
  const isPublic = answer.status === null || answer.isPublic
  return { status: answer.status, durationMs, answer: text, isPublic, headers, body }
}

const sampleContent = 'A sample to test a webhook with.\n'

function newSampleBody(now: Date): string {
  const result = toScanResult({
    id: newScanId(now),
    kind: 'malware',
    status: 'clean',
    contentLength: sampleContent.length,
    contentType: 'text/plain',
    contentName: 'webhook-sample.txt',
    signals: [],
    metadata: { hash_sha1: hash('sha1', sampleContent), hash_sha256: hash('sha256', sampleContent) },
    createdAt: now,
    completedAt: now,
  })
  return JSON.stringify(result)
}

const maxAnswerBytes = 1024

/** The first 1 KB of a response as text that PostgreSQL can store: well-formed and without NUL. */
export function toAnswerText(answer: Buffer): string {
  const text = decodeBeginning(answer)
  // An invalid byte becomes a replacement character of three bytes, so the text is cut a second time.
  return text === '' ? '' : decodeBeginning(Buffer.from(text.replaceAll('\0', '\u{fffd}')))
}

/** Decodes the beginning of a response, without a last character that the cut divides. */
const decodeBeginning = (bytes: Buffer) =>
  new TextDecoder('utf-8', { ignoreBOM: true }).decode(bytes.subarray(0, maxAnswerBytes), { stream: true })
