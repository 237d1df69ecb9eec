type Waiting<P> = { give(place: P): void; turnAway(error: Error): void }

/** Those who wait for a place of which there are too few, in the order of their coming. */
export function makeLine<P>(deps: {
  maxWaiting: number
  waitMs: number
  /** What is thrown at who finds the line full, or has waited too long. */
  toFull(): Error
  toLate(): Error
}) {
  const queue = new Set<Waiting<P>>()

  return {
    wait(signal: AbortSignal): Promise<P> {
      if (queue.size >= deps.maxWaiting) throw deps.toFull()
      return new Promise((resolve, reject) => {
        const done = () => {
          clearTimeout(timer)
          signal.removeEventListener('abort', abort)
          queue.delete(waiting)
        }
        const waiting = {
          give(place: P) {
            done()
            resolve(place)
          },
          turnAway(error: Error) {
            done()
            reject(error)
          },
        }
        const abort = () => waiting.turnAway(signal.reason)
        const timer = setTimeout(() => waiting.turnAway(deps.toLate()), deps.waitMs)
        signal.addEventListener('abort', abort, { once: true })
        queue.add(waiting)
      })
    },
    /** To the first in the line; false when nobody waits. */
    give(place: P): boolean {
      const [next] = queue
      next?.give(place)
      return next !== undefined
    },
    turnAllAway(toError: () => Error) {
      for (const waiting of [...queue]) waiting.turnAway(toError())
    },
    count: () => queue.size,
  }
}
