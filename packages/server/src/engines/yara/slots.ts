import { EngineDown } from '../../domain/ports/scan-engine.ts'

type Waiting<P> = { give(place: P): void }

/** Lends places, in the order of asking. */
export function makeSlots<P>(places: P[], deps: { maxWaiting: number; waitMs: number }) {
  const free = [...places]
  const queue = new Set<Waiting<P>>()
  let onDrained: (() => void) | undefined

  const giveBack = (place: P) => {
    const [next] = queue
    if (next !== undefined) {
      queue.delete(next)
      next.give(place)
      return
    }
    free.push(place)
    if (free.length === places.length) onDrained?.()
  }

  const wait = (signal: AbortSignal): Promise<P> => {
    if (queue.size >= deps.maxWaiting) throw new EngineDown('Too many scans wait for YARA')
    return new Promise((resolve, reject) => {
      const done = () => {
        clearTimeout(timer)
        signal.removeEventListener('abort', abort)
        queue.delete(waiting)
      }
      const abort = () => {
        done()
        reject(signal.reason)
      }
      const waiting: Waiting<P> = {
        give(place) {
          done()
          resolve(place)
        },
      }
      const timer = setTimeout(() => {
        done()
        reject(new EngineDown(`YARA was busy for ${deps.waitMs} ms`))
      }, deps.waitMs)
      signal.addEventListener('abort', abort, { once: true })
      queue.add(waiting)
    })
  }

  return {
    /** The place is back when `work` is done, however long its caller waits for that. */
    async use<T>(work: (place: P) => Promise<T>, signal: AbortSignal): Promise<T> {
      signal.throwIfAborted()
      const place = free.pop() ?? (await wait(signal))
      try {
        return await work(place)
      } finally {
        giveBack(place)
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
