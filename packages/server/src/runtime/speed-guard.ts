const windowMs = 60_000
const windowBytes = 60 * 1024
const wholeMs = 3_600_000

/**
 * Finds request bodies that arrive too slowly: less than 1 KB per second over a minute, or longer than an hour in
 * total. Measures with the monotonic clock, because an adjusted system time must not end uploads.
 */
export function makeSpeedGuard() {
  const started = performance.now()
  let windowStart = started
  let bytes = 0
  return {
    /** Returns a sentence when the body is too slow. */
    add(count: number): string | undefined {
      bytes += count
      const now = performance.now()
      if (now - started >= wholeMs) return 'The body took more than an hour.'
      if (now - windowStart < windowMs) return undefined
      if (bytes < windowBytes) return 'The body arrived at less than 1 KB a second.'
      windowStart = now
      bytes = 0
      return undefined
    },
    /** Excludes time in which the sender waited for the service; it still counts towards the hour. */
    excludeWait(ms: number) {
      windowStart += ms
    },
  }
}
