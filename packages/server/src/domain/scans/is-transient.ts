import { StorageUnavailable } from '../ports/content-store.ts'
import { EngineBusy } from '../ports/scan-engine.ts'
import { Problem } from '../problem.ts'

/** Too much to do, no room for it, or a storage that is away: nobody's failure, and it passes. */
export const isTransient = (error: unknown): boolean =>
  error instanceof EngineBusy ||
  error instanceof StorageUnavailable ||
  (error instanceof Problem && ['overloaded', 'storage-full'].includes(error.refusal.kind))
