/** How often the event loop is looked at. Processor time below this is no stall. */
const everyMs = 20
/** Processor time without a turn for others from which a stall counts. */
const stallMs = 50
/** The longest stall is remembered for one to two of these periods, so that a scrape in each of them sees it. */
const periodMs = 60_000

/**
 * Watches for how long the event loop computes without serving anything else, by the processor time of its thread: on a
 * busy machine, elapsed time would also tell how long other programs had the processor.
 */
export function watchStalls({ readThreadMs = readOwnThreadMs, now = () => performance.now() } = {}) {
  let lastMs = readThreadMs()
  let beganAt = now()
  let longest = { current: 0, previous: 0 }
  let stalls = 0

  const timer = setInterval(() => {
    const threadMs = readThreadMs()
    const tookMs = threadMs - lastMs
    lastMs = threadMs
    if (now() - beganAt > periodMs) {
      beganAt = now()
      longest = { current: 0, previous: longest.current }
    }
    longest.current = Math.max(longest.current, tookMs)
    if (tookMs > stallMs) stalls++
  }, everyMs).unref()

  return {
    /** Seconds of the longest stall within the last one to two minutes. */
    findLongestSeconds: () => Math.max(longest.current, longest.previous) / 1000,
    /** Stalls of more than 50 ms since the start. */
    countStalls: () => stalls,
    close: () => clearInterval(timer),
  }
}

function readOwnThreadMs(): number {
  const { user, system } = process.threadCpuUsage()
  return (user + system) / 1000
}
