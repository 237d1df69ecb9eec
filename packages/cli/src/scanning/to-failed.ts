import {
  Aborted,
  AssayError,
  ConnectionFailed,
  NotFound,
  OutOfCredits,
  Overloaded,
  RateLimited,
  Unauthorized,
  UnexpectedAnswer,
} from '@assay/client'
import { toFileFault } from '../targets/target.ts'
import type { Outcome } from './outcome.ts'

const forAll = [Unauthorized, OutOfCredits, ConnectionFailed, NotFound, UnexpectedAnswer, RateLimited, Overloaded]

/** What went wrong, as an outcome. */
export function toFailed(error: unknown): Outcome {
  if (error instanceof Aborted) return { kind: 'unfinished' }
  if (!(error instanceof AssayError)) return { kind: 'failed', ...toFileFault(error), isForAll: false }
  const isForAll = forAll.some((type) => error instanceof type)
  return { kind: 'failed', reason: toSentence(error), code: error.name, isForAll }
}

/** The library speaks of its own options. */
export const toSentence = ({ message }: AssayError): string => message.replaceAll('baseUrl', 'ASSAY_URL')
