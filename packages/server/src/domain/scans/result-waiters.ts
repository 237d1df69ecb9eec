/** Tells those who wait for the result of a scan in this process that it is there. */
export function makeResultWaiters() {
  const waiting = new Map<string, Set<() => void>>()

  return {
    notify(scanId: string) {
      for (const wake of waiting.get(scanId) ?? []) wake()
    },
    /** Until it rings for this scan, the time is over, or nobody wants to know any more. */
    async wait(scanId: string, ms: number, signal: AbortSignal): Promise<void> {
      if (signal.aborted) return
      const { promise, resolve } = Promise.withResolvers<void>()
      const timer = setTimeout(resolve, ms)
      const others = waiting.get(scanId) ?? new Set()
      waiting.set(scanId, others.add(resolve))
      signal.addEventListener('abort', () => resolve(), { once: true })
      await promise
      clearTimeout(timer)
      others.delete(resolve)
      if (others.size === 0) waiting.delete(scanId)
    },
  }
}

export type ResultWaiters = ReturnType<typeof makeResultWaiters>
