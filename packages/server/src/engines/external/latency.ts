const keptCount = 1000

/** Remembers how long the last scans took. */
export function makeLatency() {
  const recent: number[] = []
  let next = 0

  const findQuantile = (sorted: number[], part: number) =>
    sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * part))]

  return {
    note(ms: number) {
      recent[next] = ms
      next = (next + 1) % keptCount
    },
    find() {
      const sorted = recent.toSorted((a, b) => a - b)
      return { p50: findQuantile(sorted, 0.5), p99: findQuantile(sorted, 0.99) }
    },
  }
}
