import { headers, type TestAnswer, testAnswers } from '@assay/contract'
import { Problem, type Refusal } from '../problem.ts'

/** What a test can be answered with before anything else is looked at, by the name in the header. */
const refusals: Record<TestAnswer, Refusal> = {
  'out-of-credits': { kind: 'out-of-credit' },
  'rate-limited': { kind: 'rate-limited', retryAfterSeconds: 1 },
  'server-error': { kind: 'engine-unavailable', detail: `${headers.test} asked for this answer.` },
  overloaded: { kind: 'overloaded', retryAfterSeconds: 1 },
}

/** `values` of the header, as they came. One that is not known is a mistake that a test wants to hear of. */
export function findTestRefusal(values: readonly string[]): Problem | undefined {
  const [value] = values
  if (value === undefined) return undefined
  const known = testAnswers.find((answer) => answer === value.trim().toLowerCase())
  if (known !== undefined && values.length === 1) return new Problem(refusals[known])
  const error = `${headers.test} must be given once, as one of ${testAnswers.join(', ')}.`
  return new Problem({ kind: 'validation', errors: { [headers.test]: [error] } })
}
