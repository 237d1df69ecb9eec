import {
  Aborted,
  AssayError,
  ConnectionFailed,
  type Meta,
  NotFound,
  NotPermitted,
  OutOfCredits,
  Overloaded,
  RateLimited,
  type ScanResult,
  Unauthorized,
  UnexpectedAnswer,
} from '@assay/client'
import { toFileError } from '../targets/target.ts'

/** The outcome of one target. */
export type Outcome =
  /** The service returned a result, which may also be an error. */
  | { kind: 'scanned'; result: ScanResult; meta?: Meta }
  | { kind: 'submitted'; id: string; meta?: Meta }
  /** There is no result. `affectsAll`: the other targets would fail for the same reason. */
  | { kind: 'failed'; reason: string; code: string; affectsAll: boolean }
  | { kind: 'empty' }
  | { kind: 'skipped'; reason: string }
  /** The run ended before the scan did. */
  | { kind: 'unfinished' }

export const newFailure = (reason: string, code = ''): Outcome => ({ kind: 'failed', reason, code, affectsAll: false })

const errorsAffectingAll = [
  Unauthorized,
  NotPermitted,
  OutOfCredits,
  ConnectionFailed,
  NotFound,
  UnexpectedAnswer,
  RateLimited,
  Overloaded,
]

/** Converts an error of the client or of the file system. */
export function toFailure(error: unknown): Outcome {
  if (error instanceof Aborted) return { kind: 'unfinished' }
  if (!(error instanceof AssayError)) return { kind: 'failed', ...toFileError(error), affectsAll: false }
  const affectsAll = errorsAffectingAll.some((type) => error instanceof type)
  return { kind: 'failed', reason: toUserMessage(error), code: error.name, affectsAll }
}

/** The message of the client, with the setting that the user knows instead of the option of the client. */
export const toUserMessage = ({ message }: AssayError): string => message.replaceAll('baseUrl', 'ASSAY_URL')
