import { EngineBusy } from '../../domain/ports/engines.ts'
import { makeLine } from '../worker/wait-queue.ts'

/** Lends places, in the order of asking. */
export function makeSemaphore<P>(places: P[], deps: { maxWaiting: number; waitMs: number }) {
  const free = [...places]
  const line = makeLine<P>({
    ...deps,
    toFull: () => new EngineBusy('Too many scans wait for YARA'),
    toLate: () => new EngineBusy(`YARA was busy for ${deps.waitMs} ms`),
  })
  let onDrained: (() => void) | undefined

  const release = (place: P) => {
    if (line.give(place)) return
    free.push(place)
    if (free.length === places.length) onDrained?.()
  }

  return {
    /** The place is back when `work` is done, however long its caller waits for that. */
    async use<T>(work: (place: P) => Promise<T>, signal: AbortSignal): Promise<T> {
      signal.throwIfAborted()
      const place = free.pop() ?? (await line.wait(signal))
      try {
        return await work(place)
      } finally {
        release(place)
      }
    },
    /** Resolves when nothing runs or waits. Nothing may be asked for afterwards. */
    drain(): Promise<void> {
      if (free.length === places.length) return Promise.resolve()
      return new Promise((resolve) => {
        onDrained = resolve
      })
    },
  }
}
