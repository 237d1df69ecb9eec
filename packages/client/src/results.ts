// Types of the API. A test compares them with the contract of the service.

export type ScanStatus = 'pending' | 'clean' | 'threat' | 'error'

/** Accept content only if `status` is `clean`. */
export type ScanResult = {
  /** Identifier of the scan. */
  id: string
  /** `malware` or `nsfw_image`. */
  scan_type: string
  status: ScanStatus
  /** Size in bytes. */
  content_length: number
  /** Media type detected from the content. */
  content_type: string
  /** Names of the threats found, or the reason for an error; null while pending. */
  signals?: string[] | null
  /** Hashes, scores and other details by name. */
  metadata?: Record<string, string> | null
  /** Times are in ISO 8601. */
  created_at: string
  completed_at?: string | null
  content_name?: string
}

/** The result of a scan that is complete. */
export type CompletedResult = ScanResult & { status: Exclude<ScanStatus, 'pending'>; signals: string[] }

export type ScanReceipt = { id: string }

export type Account = {
  plan: string
  credit_limit: number
  credit_remaining: number
  created_date: string
  period_start_date: string
  period_end_date: string
}

/** A webhook as the service sends it to the callback URL of a scan. */
export type SignedDelivery = {
  id: string
  scan_id: string
  callback_url: string
  created_at: string
  /** The text whose UTF-8 bytes the headers sign. */
  body: string
  headers: Record<string, string>
}

/** `until` is the `since` of the next call. */
export type DeliveryList = { until: string; deliveries: SignedDelivery[] }

export type ProblemDetails = {
  type?: string | null
  title?: string | null
  status?: number | null
  detail?: string | null
  instance?: string | null
  traceId: string
}

export type ValidationProblemDetails = ProblemDetails & { errors: Record<string, string[]> }

/** Values from the response headers. A member is missing if its headers are, or if a page may not read them. */
export type Meta = {
  /** HTTP status. */
  status: number
  credits?: { limit: number; remaining: number }
  /** Requests left in the rate-limit window of the key. Missing on a 429. */
  rate?: { window: string; remaining: number; resetsAt: Date }
  /** Region that processed the request. */
  region?: string
  /** Number of times that the request was sent. */
  attempts: number
}

/** A response body with its `meta`, which is not enumerable: logs, comparisons and JSON contain only the body. */
export type WithMeta<T> = T & { readonly meta: Meta }

export const withMeta = <T extends object>(body: T, meta: Meta): WithMeta<T> =>
  Object.defineProperty(body, 'meta', { value: meta }) as WithMeta<T>

const statuses: readonly unknown[] = ['pending', 'clean', 'threat', 'error'] satisfies ScanStatus[]

/** Rejects unknown statuses: code that checks only for `threat` would accept them. */
export const isScanResult = (value: unknown): value is ScanResult =>
  isReceipt(value) && 'status' in value && statuses.includes(value.status)

export const isCompleted = (value: unknown): value is ScanResult & Pick<CompletedResult, 'status'> =>
  isScanResult(value) && value.status !== 'pending'

/** A pending result has no receipt. */
export const hasReceipt = (value: unknown): value is ScanResult & { metadata: { receipt: string } } =>
  isScanResult(value) && typeof value.metadata?.receipt === 'string'

/** The interface allows a service to leave `signals` out when there are none. */
export function withSignals<T extends ScanResult>(result: T): T & { signals: string[] } {
  result.signals ??= []
  return result as T & { signals: string[] }
}

export const isReceipt = (value: unknown): value is ScanReceipt =>
  typeof value === 'object' && value !== null && 'id' in value && typeof value.id === 'string'

export const isAccount = (value: unknown): value is Account =>
  typeof value === 'object' &&
  value !== null &&
  'credit_remaining' in value &&
  typeof value.credit_remaining === 'number' &&
  'plan' in value

export const isDeliveryList = (value: unknown): value is DeliveryList =>
  typeof value === 'object' &&
  value !== null &&
  'until' in value &&
  typeof value.until === 'string' &&
  'deliveries' in value &&
  Array.isArray(value.deliveries)
