/** Names exactly as they go out. They are matched without regard to case when they come in. */
export const headers = {
  apiKey: 'X-API-Key',
  result: 'X-API-Result',
  creditLimit: 'X-API-Credit-Limit',
  creditRemaining: 'X-API-Credit-Remaining',
  rateLimit: 'X-Rate-Limit-Limit',
  rateRemaining: 'X-Rate-Limit-Remaining',
  rateReset: 'X-Rate-Limit-Reset',
  retryAfter: 'Retry-After',
  /** Ours: the same key, operation and content are answered and charged once. */
  idempotencyKey: 'Idempotency-Key',
  /** Ours: the answer that a request with a test key asks for. */
  test: 'X-Assay-Test',
  /** Ours: which region answered. */
  region: 'X-Assay-Region',
} as const
