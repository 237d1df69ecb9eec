import { EngineBusy } from './ports/engines.ts'

type Waiter = { weight: number; resolve(): void; reject(error: unknown): void }

/**
 * Lets at most `count` pieces of work run at once, or as many as their weights together allow. The others wait in the
 * order of their arrival; more than `maxWaiting`, and those that wait longer than `maxWaitMs`, fail with `EngineBusy`.
 */
export function makeSemaphore({ count, maxWaiting = Infinity, maxWaitMs = 30_000 }: SemaphoreOptions) {
  const waiting = new Set<Waiter>()
  let free = count

  /** Takes permits that `release` must give back. The signal ends the wait only. */
  function acquire(signal?: AbortSignal, weight = 1): Promise<void> | undefined {
    signal?.throwIfAborted()
    if (free >= weight && waiting.size === 0) {
      free -= weight
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
        weight,
        resolve() {
          leave()
          resolve()
        },
        reject(error) {
          leave()
          reject(error)
          serveWaiting()
        },
      }
      const abort = () => waiter.reject(signal?.reason)
      const rejectAsBusy = () => waiter.reject(new EngineBusy(`The engine was busy for ${maxWaitMs} ms`))
      const timer = maxWaitMs === Infinity ? undefined : setTimeout(rejectAsBusy, maxWaitMs)
      signal?.addEventListener('abort', abort, { once: true })
      waiting.add(waiter)
    })
  }

  function release(weight = 1) {
    free += weight
    serveWaiting()
  }

  /** Hands permits to the first waiters directly, so that a newcomer cannot overtake the queue. */
  function serveWaiting() {
    for (const first of waiting) {
      if (free < first.weight) return
      free -= first.weight
      first.resolve()
    }
  }

  return {
    acquire,
    release,
    /** Takes a free permit away, for a resource that does not exist any more. */
    withdraw() {
      free--
    },
    async use<T>(work: () => Promise<T>, signal?: AbortSignal, weight = 1): Promise<T> {
      await acquire(signal, weight)
      try {
        return await work()
      } finally {
        release(weight)
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
