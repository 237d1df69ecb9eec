import { setTimeout as pause } from 'node:timers/promises'
import { StorageUnavailable } from './ports/content-store.ts'
import { EngineBusy } from './ports/engines.ts'
import { Problem } from './problem.ts'

const pausesMs = [100, 500, 2000, 5000]
/** The latest start of an attempt: leases last longer than this, and a stop of the service does not wait longer. */
const lastAttemptMs = 10_000

/** Runs `record`, which writes finished work, and retries it for 10 s while the database is unavailable. */
export async function retryBriefly<T>(record: () => Promise<T>): Promise<T> {
  const endsAt = performance.now() + lastAttemptMs
  for (const pauseMs of pausesMs) {
    try {
      return await record()
    } catch (error) {
      if (performance.now() + pauseMs > endsAt) throw error
      await pause(pauseMs)
    }
  }
  return record()
}

/**
 * Whether an error is temporary and not the fault of the scan: an overload, a full disk, unavailable storage or missing
 * signatures.
 */
export const isTransient = (error: unknown): boolean =>
  error instanceof EngineBusy ||
  error instanceof StorageUnavailable ||
  (error instanceof Problem && ['overloaded', 'storage-full', 'degraded'].includes(error.refusal.kind))
