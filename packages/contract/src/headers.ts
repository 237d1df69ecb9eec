/** Header names as the service sends them. Incoming names match in any case. */
export const headers = {
  apiKey: 'X-API-Key',
  result: 'X-API-Result',
  creditLimit: 'X-API-Credit-Limit',
  creditRemaining: 'X-API-Credit-Remaining',
  rateLimit: 'X-Rate-Limit-Limit',
  rateRemaining: 'X-Rate-Limit-Remaining',
  rateReset: 'X-Rate-Limit-Reset',
  retryAfter: 'Retry-After',
  /** Extension: requests with the same key, operation and content are processed and charged once. */
  idempotencyKey: 'Idempotency-Key',
  /** Extension: selects one of `testAnswers` for a request with a test key. */
  test: 'X-Assay-Test',
  /** Extension: region that processed the request. */
  region: 'X-Assay-Region',
} as const

/** Headers of a webhook delivery: the signature of the interface, and those of Standard Webhooks. */
export const webhookHeaders = {
  signature: 'X-Api-Signature',
  id: 'webhook-id',
  timestamp: 'webhook-timestamp',
  standardSignature: 'webhook-signature',
} as const

/** Values of X-Assay-Test: the responses that a request with a test key can ask for. */
export const testAnswers = ['out-of-credits', 'rate-limited', 'server-error', 'overloaded'] as const
