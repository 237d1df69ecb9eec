import { EngineBusy } from './ports/engines.ts'

type Waiter = { resolve(): void; reject(error: unknown): void }

/**
 * Lets at most `count` pieces of work run at once. The others wait in the order of their arrival; more than
 * `maxWaiting`, and those that wait longer than `maxWaitMs`, fail with `EngineBusy`.
 */
export function makeSemaphore({ count, maxWaiting = Infinity, maxWaitMs = 30_000 }: SemaphoreOptions) {
  const waiting = new Set<Waiter>()
  let free = count

  /** Takes a permit that `release` must give back. The signal ends the wait only. */
  function acquire(signal?: AbortSignal): Promise<void> | undefined {
    signal?.throwIfAborted()
    if (free > 0) {
      free--
      return undefined
    }
    if (waiting.size >= maxWaiting) throw new EngineBusy(`Too many scans: ${maxWaiting} are waiting already`)
    return new Promise((resolve, reject) => {
      const leave = () => {
        clearTimeout(timer)
        signal?.removeEventListener('abort', abort)
        waiting.delete(waiter)
      }
      const waiter: Waiter = {
        resolve() {
          leave()
          resolve()
        },
        reject(error) {
          leave()
          reject(error)
        },
      }
      const abort = () => waiter.reject(signal?.reason)
      const rejectAsBusy = () => waiter.reject(new EngineBusy(`The engine was busy for ${maxWaitMs} ms`))
      const timer = maxWaitMs === Infinity ? undefined : setTimeout(rejectAsBusy, maxWaitMs)
      signal?.addEventListener('abort', abort, { once: true })
      waiting.add(waiter)
    })
  }

  /** Hands the permit to the first waiter directly, so that a newcomer cannot overtake the queue. */
  function release() {
    const [first] = waiting
    if (first === undefined) free++
    else first.resolve()
  }

  return {
    acquire,
    release,
    /** Takes a free permit away, for a resource that does not exist any more. */
    withdraw() {
      free--
    },
    async use<T>(work: () => Promise<T>, signal?: AbortSignal): Promise<T> {
      await acquire(signal)
      try {
        return await work()
      } finally {
        release()
      }
    },
    rejectWaiting(toError: () => Error) {
      for (const waiter of [...waiting]) waiter.reject(toError())
    },
    countWaiting: () => waiting.size,
  }
}

type SemaphoreOptions = { count: number; maxWaiting?: number; maxWaitMs?: number }

export type Semaphore = ReturnType<typeof makeSemaphore>
