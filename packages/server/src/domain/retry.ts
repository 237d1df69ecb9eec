import { setTimeout as pause } from 'node:timers/promises'
import { StorageUnavailable } from './ports/content-store.ts'
import { EngineBusy } from './ports/engines.ts'
import { Problem } from './problem.ts'

const pausesMs = [100, 500, 2000, 5000]
/** No try begins later: whoever holds a lease has it for longer, and a stop waits no longer. */
const lastTryMs = 10_000

/** For work that is done and only has to be recorded: a database that is away for a moment is waited for. */
export async function keepTrying<T>(record: () => Promise<T>): Promise<T> {
  const endsAt = performance.now() + lastTryMs
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

/** Too much to do, no room for it, or a storage that is away: nobody's failure, and it passes. */
export const isTransient = (error: unknown): boolean =>
  error instanceof EngineBusy ||
  error instanceof StorageUnavailable ||
  (error instanceof Problem && ['overloaded', 'storage-full'].includes(error.refusal.kind))
