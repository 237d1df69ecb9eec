/** Values of X-Assay-Test: the answers that a request with a test key can ask for. */
export const testAnswers = ['out-of-credits', 'rate-limited', 'server-error', 'overloaded'] as const
export type TestAnswer = (typeof testAnswers)[number]
