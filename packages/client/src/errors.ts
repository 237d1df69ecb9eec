import type { Meta, ProblemDetails } from './results.ts'

type Details = { cause?: unknown; meta?: Meta; problem?: ProblemDetails }

/** Everything that this package throws on purpose. `message` is a sentence that says what to do. */
export class AssayError extends Error {
  override readonly name: string = 'AssayError'
  /** Of HTTP; undefined when there was no answer. */
  readonly status: number | undefined
  /** The operator finds the cause in the log under it. */
  readonly traceId: string | undefined
  /** Headers of the answer, if there was one. */
  readonly meta: Meta | undefined
  /** The body of the answer, if it had one. 401 and 403 have none. */
  readonly problem: ProblemDetails | undefined

  constructor(message: string, { cause, meta, problem }: Details = {}) {
    super(message, cause === undefined ? undefined : { cause })
    this.status = meta?.status
    this.traceId = problem?.traceId
    this.meta = meta
    this.problem = problem
  }
}

/** 400, and other refusals of a request that is not well-formed: 405, 408, 413, 431. */
export class BadRequest extends AssayError {
  override readonly name: string = 'BadRequest'
}

/** 401 */
export class Unauthorized extends AssayError {
  override readonly name: string = 'Unauthorized'
}

/** 403 */
export class OutOfCredits extends AssayError {
  override readonly name: string = 'OutOfCredits'
}

/** 404: no such path. A job that is not there is a ValidationFailed of the field `id`. */
export class NotFound extends AssayError {
  override readonly name: string = 'NotFound'
}

/** 415 */
export class UnsupportedMediaType extends AssayError {
  override readonly name: string = 'UnsupportedMediaType'
}

/** 422 */
export class ValidationFailed extends AssayError {
  override readonly name: string = 'ValidationFailed'
  /** Messages by field. */
  readonly errors: Record<string, string[]>

  constructor(message: string, details: Details & { errors: Record<string, string[]> }) {
    super(message, details)
    this.errors = details.errors
  }
}

type Later = Details & { retryAfterSeconds: number | undefined }

/** 429 */
export class RateLimited extends AssayError {
  override readonly name: string = 'RateLimited'
  /** Seconds. */
  readonly retryAfter: number | undefined

  constructor(message: string, details: Later) {
    super(message, details)
    this.retryAfter = details.retryAfterSeconds
  }
}

/** 5xx */
export class ServerError extends AssayError {
  override readonly name: string = 'ServerError'
}

/** 503 */
export class Overloaded extends ServerError {
  override readonly name: string = 'Overloaded'
  /** Seconds. */
  readonly retryAfter: number | undefined

  constructor(message: string, details: Later) {
    super(message, details)
    this.retryAfter = details.retryAfterSeconds
  }
}

/** There is something at this address, and it does not speak like Assay. */
export class UnexpectedAnswer extends AssayError {
  override readonly name: string = 'UnexpectedAnswer'
}

/** No connection, or it broke before the answer was there. */
export class ConnectionFailed extends AssayError {
  override readonly name: string = 'ConnectionFailed'
}

export class TimedOut extends AssayError {
  override readonly name: string = 'TimedOut'
}

/** The caller's signal; `cause` is its reason. */
export class Aborted extends AssayError {
  override readonly name: string = 'Aborted'
}

/** What was to be scanned cannot be sent: no such file, a directory, no permission, empty. Nothing was sent. */
export class UnusableInput extends AssayError {
  override readonly name: string = 'UnusableInput'
}

export type WebhookFault = 'unsigned' | 'wrong-signature' | 'too-old' | 'unreadable'

/** A webhook that must not be believed. */
export class WebhookRejected extends AssayError {
  override readonly name: string = 'WebhookRejected'
  readonly fault: WebhookFault

  constructor(message: string, fault: WebhookFault) {
    super(message)
    this.fault = fault
  }
}
