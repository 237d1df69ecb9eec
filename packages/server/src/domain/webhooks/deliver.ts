import { createHmac, hash } from 'node:crypto'
import { webhookHeaders } from '@assay/contract'
import type { Clock } from '../clock.ts'
import type {
  Attempt,
  ClaimedDelivery,
  DeliveryStore,
  NextDeliveryState,
  WebhookResponse,
  WebhookSender,
} from '../ports/delivery-store.ts'
import { retryBriefly } from '../retry.ts'
import { newScanId, toScanResult } from '../scans/scan.ts'

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

const pauseJitter = 0.2
const minPauseAfter429Ms = minute
const tooManyRequestsStatus = 429
const goneStatus = 410

/** The parts of a response that decide about a retry. The status is null when there was no response. */
type RetryAnswer = { status: number | null; retryAfter: string | undefined }

type FinishedAttempt = {
  /** Attempts before this one. */
  attempts: number
  answer: RetryAnswer
  /** The time, which a date in Retry-After is compared with. */
  now: Date
  /** A random number from 0 to 1, for the jitter. */
  random: number
}

/**
 * Decides whether to try again, and after which pause. A redirect is a failure: the account did not name the other
 * address.
 */
export function decideNextState(
  retryMs: readonly number[],
  { attempts, answer, now, random }: FinishedAttempt,
): NextDeliveryState {
  if (isSuccess(answer.status)) return { state: 'delivered' }
  if (answer.status === goneStatus) return { state: 'stopped' }
  const stepMs = retryMs[attempts]
  if (stepMs === undefined) return { state: 'dead' }
  const pauseMs = Math.max(
    stepMs * (1 - pauseJitter + 2 * pauseJitter * random),
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

type DeliveryToSign = {
  /** Identifier of the delivery, sent in every attempt so that receivers can deduplicate. */
  id: string
  body: Buffer
  /** The secret of the account, followed by its previous one while that is still valid. */
  secrets: readonly string[]
  /** Attempts before this one. */
  attempts: number
  /** The time of this attempt. */
  at: Date
}

/**
 * The headers that prove the origin of a delivery. The headers of Standard Webhooks sign body, id and time with every
 * valid secret. `X-Api-Signature` has room for one signature of the body: the first attempt uses the current secret, and
 * further attempts take turns, so that a receiver that knows either secret gets the delivery.
 */
export function toSignatureHeaders({ id, body, secrets, attempts, at }: DeliveryToSign): Record<string, string> {
  const secret = secrets[attempts % secrets.length]
  if (secret === undefined) throw new Error(`The account of delivery ${id} has no webhook secret`)
  const timestamp = String(Math.floor(at.getTime() / 1000))
  const signatures = secrets.map((valid) => {
    const hmac = createHmac('sha256', toStandardKey(valid)).update(`${id}.${timestamp}.`).update(body)
    return `v1,${hmac.digest('base64')}`
  })
  return {
    [webhookHeaders.signature]: createHmac('sha256', Buffer.from(secret)).update(body).digest('hex'),
    [webhookHeaders.id]: id,
    [webhookHeaders.timestamp]: timestamp,
    [webhookHeaders.standardSignature]: signatures.join(' '),
  }
}

/** Standard Webhooks decodes the text after `whsec_` into the key. Secrets that operators chose may have any form. */
function toStandardKey(secret: string): Buffer {
  const encoded = /^whsec_([A-Za-z0-9+/]+={0,2})$/.exec(secret)?.[1]
  return encoded === undefined ? Buffer.from(secret) : Buffer.from(encoded, 'base64')
}
