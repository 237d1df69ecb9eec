/** All reasons to refuse a request. Only `http` knows the status of each. */
export type Refusal =
  | { kind: 'unauthenticated' }
  | { kind: 'signed-out'; detail: string }
  | { kind: 'forbidden'; detail: string }
  | { kind: 'not-found'; detail?: string }
  | { kind: 'conflict'; detail: string }
  | { kind: 'rate-limited'; retryAfterSeconds: number; detail?: string }
  | { kind: 'out-of-credit' }
  /** The API key may not be used for this, or from here. */
  | { kind: 'key-restricted'; detail: string }
  | { kind: 'malformed-request'; detail: string }
  | { kind: 'request-timeout'; detail: string }
  | { kind: 'content-too-large'; detail: string }
  | { kind: 'unsupported-media-type'; detail: string }
  | { kind: 'validation'; errors: FieldErrors }
  | { kind: 'engine-unavailable'; detail: string }
  | { kind: 'overloaded'; retryAfterSeconds: number; detail?: string }
  | { kind: 'unavailable'; retryAfterSeconds: number }
  | { kind: 'storage-full'; retryAfterSeconds: number }
  /** The operator refuses malware scans while ClamAV or its official databases are missing or old. */
  | { kind: 'degraded'; retryAfterSeconds: number; detail: string }
  /** The request may have been accepted and charged. With every other kind it was not. */
  | { kind: 'outcome-unknown' }

/** Error messages by field, named as in the request. */
export type FieldErrors = Record<string, string[]>

/** A refusal, thrown by the domain. */
export class Problem extends Error {
  readonly refusal: Refusal

  constructor(refusal: Refusal, options?: ErrorOptions) {
    super(refusal.kind, options)
    this.refusal = refusal
  }
}

export const malformed = (detail: string, options?: ErrorOptions) =>
  new Problem({ kind: 'malformed-request', detail }, options)

/** A mistake of the operator in a setting or command: shown as a sentence, without a stack. */
export class OperatorMistake extends Error {}
