import { EngineBusy } from './ports/engines.ts'

type Bounds = { count: number; maxWaiting: number; maxWaitMs?: number }

/** At most `count` pieces of work at once; the others wait their turn, first come first served. */
export function makeSemaphore({ count, maxWaiting, maxWaitMs = 30_000 }: Bounds) {
  const waiting: (() => void)[] = []
  let free = count

  return {
    async use<T>(work: () => Promise<T>): Promise<T> {
      await take()
      try {
        return await work()
      } finally {
        // Handed over, not freed: nobody can slip in before those who wait.
        const next = waiting.shift()
        if (next === undefined) free++
        else next()
      }
    },
    countWaiting: () => waiting.length,
  }

  function take(): Promise<void> | undefined {
    if (free > 0) {
      free--
      return undefined
    }
    if (waiting.length >= maxWaiting) throw new EngineBusy(`${maxWaiting} others wait for a turn already`)
    return new Promise((resolve, reject) => {
      const begin = () => {
        clearTimeout(late)
        resolve()
      }
      const late = setTimeout(() => {
        waiting.splice(waiting.indexOf(begin), 1)
        reject(new EngineBusy(`No turn within ${maxWaitMs} ms`))
      }, maxWaitMs)
      waiting.push(begin)
    })
  }
}

export type Semaphore = ReturnType<typeof makeSemaphore>
