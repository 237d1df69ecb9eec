/** What the service answers. A test compares these types and the paths with those of the service itself. */

export type ScanStatus = 'pending' | 'clean' | 'threat' | 'error'

/** Only `clean` means that all of the content was looked at and nothing was found. */
export type ScanResult = {
  /** Of the job. */
  id: string
  /** `malware` or `nsfw_image`. */
  scan_type: string
  status: ScanStatus
  /** Bytes. */
  content_length: number
  /** As found in the content itself. */
  content_type: string
  /** Names of what was found, or the reason of an error; null while pending. */
  signals?: string[] | null
  /** Hashes, scores and more, by name. */
  metadata?: Record<string, string> | null
  /** ISO 8601, like all times. */
  created_at: string
  completed_at?: string | null
  content_name?: string
}

export type ScanReceipt = { id: string }

export type Account = {
  plan: string
  credit_limit: number
  credit_remaining: number
  created_date: string
  period_start_date: string
  period_end_date: string
}

export type ProblemDetails = {
  type?: string | null
  title?: string | null
  status?: number | null
  detail?: string | null
  instance?: string | null
  traceId: string
}

export type ValidationProblemDetails = ProblemDetails & { errors: Record<string, string[]> }

/** What the headers of an answer said. A member is missing when its headers were, or when a page may not read them. */
export type Meta = {
  /** Of HTTP. */
  status: number
  credits?: { limit: number; remaining: number }
  /** Requests left in the window of the key. There is none on the answer that a window is used up. */
  rate?: { window: string; remaining: number; resetsAt: Date }
  /** The name of the region that answered. */
  region?: string
  /** How many times the request was sent. */
  attempts: number
}

/**
 * The answer with its `meta`. It cannot be enumerated: what is logged, compared or written as JSON is what the service
 * said, and nothing else.
 */
export type WithMeta<T> = T & { readonly meta: Meta }

export const withMeta = <T extends object>(answer: T, meta: Meta): WithMeta<T> =>
  Object.defineProperty(answer, 'meta', { value: meta }) as WithMeta<T>

const statuses: readonly unknown[] = ['pending', 'clean', 'threat', 'error'] satisfies ScanStatus[]

/** Nobody must take something else for a verdict: code that looks for `threat` alone would let it pass. */
export const isScanResult = (value: unknown): value is ScanResult =>
  isReceipt(value) && 'status' in value && statuses.includes(value.status)

export const isReceipt = (value: unknown): value is ScanReceipt =>
  typeof value === 'object' && value !== null && 'id' in value && typeof value.id === 'string'

export const isAccount = (value: unknown): value is Account =>
  typeof value === 'object' &&
  value !== null &&
  'credit_remaining' in value &&
  typeof value.credit_remaining === 'number' &&
  'plan' in value
