/** Refusals: the caller did something we do not accept. `http` alone knows which status each one has. */
export type Refusal =
  | { kind: 'unauthenticated' }
  | { kind: 'rate-limited'; retryAfterSeconds: number }
  | { kind: 'out-of-credit' }
  | { kind: 'malformed-request'; detail: string }
  | { kind: 'request-timeout'; detail: string }
  | { kind: 'content-too-large'; detail: string }
  | { kind: 'unsupported-media-type'; detail: string }
  | { kind: 'validation'; errors: FieldErrors }
  | { kind: 'engine-unavailable'; detail: string }
  | { kind: 'overloaded'; retryAfterSeconds: number; detail?: string }
  | { kind: 'unavailable'; retryAfterSeconds: number }
  | { kind: 'storage-full'; retryAfterSeconds: number }
  /** It may have been accepted and charged, or not. All the others above: it was not. */
  | { kind: 'outcome-unknown' }

/** Messages by the name the caller knows the field by. */
export type FieldErrors = Record<string, string[]>

export class Problem extends Error {
  readonly refusal: Refusal

  constructor(refusal: Refusal, options?: ErrorOptions) {
    super(refusal.kind, options)
    this.refusal = refusal
  }
}

export const malformed = (detail: string, options?: ErrorOptions) =>
  new Problem({ kind: 'malformed-request', detail }, options)

/** A mistake of the operator in a command: shown as a sentence, without a stack. */
export class OperatorMistake extends Error {}
