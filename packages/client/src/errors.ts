import type { Meta, ProblemDetails } from './results.ts'

type Details = { cause?: unknown; meta?: Meta; problem?: ProblemDetails }

/** Base of all errors of this package. `message` is a sentence that says what to do. */
export class AssayError extends Error {
  override readonly name: string = 'AssayError'
  /** HTTP status; undefined if there was no response. */
  readonly status: number | undefined
  /** Trace id under which the operator finds the cause in the log. */
  readonly traceId: string | undefined
  /** Values from the response headers, if there was a response. */
  readonly meta: Meta | undefined
  /** Body of the response, if it had one. 401, and 403 without credits, have none. */
  readonly problem: ProblemDetails | undefined

  constructor(message: string, { cause, meta, problem }: Details = {}) {
    super(message, cause === undefined ? undefined : { cause })
    this.status = meta?.status
    this.traceId = problem?.traceId
    this.meta = meta
    this.problem = problem
  }
}

/** 400, 405, 408, 413 or 431: the request is malformed. */
export class BadRequest extends AssayError {
  override readonly name: string = 'BadRequest'
}

/** 401: the service does not accept the API key. */
export class Unauthorized extends AssayError {
  override readonly name: string = 'Unauthorized'
}

/** 403 without a body: the account has no credits left. */
export class OutOfCredits extends AssayError {
  override readonly name: string = 'OutOfCredits'
}

/** 403 with a reason: the API key is restricted to other operations, kinds of scans or networks. */
export class NotPermitted extends AssayError {
  override readonly name: string = 'NotPermitted'
}

/** 404: no such path. A scan that does not exist is a ValidationFailed with the field `id`. */
export class NotFound extends AssayError {
  override readonly name: string = 'NotFound'
}

/** 415: the service does not support the media type. */
export class UnsupportedMediaType extends AssayError {
  override readonly name: string = 'UnsupportedMediaType'
}

/** 422: fields are missing or invalid. */
export class ValidationFailed extends AssayError {
  override readonly name: string = 'ValidationFailed'
  /** Messages by field. */
  readonly errors: Record<string, string[]>

  constructor(message: string, details: Details & { errors: Record<string, string[]> }) {
    super(message, details)
    this.errors = details.errors
  }
}

type RetryDetails = Details & { retryAfterSeconds: number | undefined }

/** 429: the rate limit of the API key is reached. */
export class RateLimited extends AssayError {
  override readonly name: string = 'RateLimited'
  /** Seconds to wait before the next attempt. */
  readonly retryAfter: number | undefined

  constructor(message: string, details: RetryDetails) {
    super(message, details)
    this.retryAfter = details.retryAfterSeconds
  }
}

/** 5xx: the service failed. */
export class ServerError extends AssayError {
  override readonly name: string = 'ServerError'
}

/** 503: the service is overloaded or temporarily unavailable. */
export class Overloaded extends ServerError {
  override readonly name: string = 'Overloaded'
  /** Seconds to wait before the next attempt. */
  readonly retryAfter: number | undefined

  constructor(message: string, details: RetryDetails) {
    super(message, details)
    this.retryAfter = details.retryAfterSeconds
  }
}

/** The response does not come from Assay. */
export class UnexpectedAnswer extends AssayError {
  override readonly name: string = 'UnexpectedAnswer'
}

/** The connection failed, or broke before the response was complete. */
export class ConnectionFailed extends AssayError {
  override readonly name: string = 'ConnectionFailed'
}

/** The call took longer than `timeoutMs`, or the timeout of its signal expired. */
export class TimedOut extends AssayError {
  override readonly name: string = 'TimedOut'
}

/** The caller's signal aborted the call; `cause` is the reason of the signal. */
export class Aborted extends AssayError {
  override readonly name: string = 'Aborted'
}

/** The content cannot be read: no such file, a directory, no permission, empty, or a stream that failed. */
export class UnusableInput extends AssayError {
  override readonly name: string = 'UnusableInput'
}

export type WebhookFault = 'unsigned' | 'wrong-signature' | 'too-old' | 'unreadable'

/** A webhook whose signature, age or body is not acceptable; `fault` says which. */
export class WebhookRejected extends AssayError {
  override readonly name: string = 'WebhookRejected'
  readonly fault: WebhookFault

  constructor(message: string, fault: WebhookFault) {
    super(message)
    this.fault = fault
  }
}
