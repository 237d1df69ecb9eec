import type { Meta, ScanResult } from '@assay/client'

/** What became of one target. */
export type Outcome =
  /** The service has looked at it; `status` is clean, threat or error. */
  | { kind: 'scanned'; result: ScanResult; meta?: Meta }
  | { kind: 'submitted'; id: string; meta?: Meta }
  /** It was not looked at. `isForAll`: the others would fare the same, until somebody does something about it. */
  | { kind: 'failed'; reason: string; code: string; isForAll: boolean }
  /** There is nothing in it to look at. */
  | { kind: 'empty' }
  | { kind: 'skipped'; reason: string }
  /** The run was ended first. */
  | { kind: 'unfinished' }

export const newFailed = (reason: string, code = ''): Outcome => ({ kind: 'failed', reason, code, isForAll: false })
