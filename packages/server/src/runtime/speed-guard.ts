const windowMs = 60_000
const windowBytes = 60 * 1024
const wholeMs = 3_600_000

/**
 * For what strangers send: less than 1 KB a second over a minute, or an hour in all, is too slow. By the clock
 * that never jumps: a corrected time of day must not end uploads.
 */
export function makeSpeedGuard() {
  const started = performance.now()
  let windowStart = started
  let bytes = 0
  return {
    /** A sentence about the body when it is too slow. */
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
    /** Time that does not count, except for the hour: whoever sends waited for us. */
    forgive(ms: number) {
      windowStart += ms
    },
  }
}
