const longestStepMs = 250
/** Turns of the event loop in which an answer can arrive, however long each of them takes. */
const leastSteps = 10

/**
 * Calls `onOver` after `ms` in which the event loop of this process ran. A stall of the event loop counts as one short
 * step, so that answers which arrived meanwhile are read first: the other side is not to blame for our own stall.
 */
export function startAwakeTimer(ms: number, onOver: () => void) {
  const stepMs = Math.min(ms / leastSteps, longestStepMs)
  let stepsLeft = Math.ceil(ms / stepMs)
  const timer = setInterval(() => {
    if (--stepsLeft > 0) return
    clearInterval(timer)
    onOver()
  }, stepMs)
  return { stop: () => clearInterval(timer) }
}

/** Pauses between two checks of the event loop: long ones while it is idle, because each check wakes the processor. */
const checkEveryMs = { busy: 20, idle: 100 }
/** An event loop is idle if it computes for at most this part of the time. */
const maxIdleShare = 1 / 20
/** Turns that the timers of an idle service cause between two checks, at most. */
const timerTurns = 10
/** Processor time without a turn for others from which a stall counts. */
const stallMs = 50
/** The longest stall is remembered for one to two of these periods, so that a scrape in each of them sees it. */
const periodMs = 60_000

/**
 * Watches for how long the event loop computes without serving anything else, by the processor time of its thread: on a
 * busy machine, elapsed time would also tell how long other programs had the processor.
 */
export function watchStalls({
  readThreadMs = readOwnThreadMs,
  now = () => performance.now(),
  countTurns = () => performance.nodeTiming.uvMetricsInfo.loopCount,
} = {}) {
  let last = { threadMs: readThreadMs(), at: now(), turns: countTurns() }
  let waitMs = checkEveryMs.busy
  let beganAt = last.at
  let longest = { current: 0, previous: 0 }
  let stalls = 0

  function check() {
    const { threadMs, at, turns } = last
    last = { threadMs: readThreadMs(), at: now(), turns: countTurns() }
    const tookMs = last.threadMs - threadMs
    // After a long pause, the processor time may belong to many short turns. Then only the delay of this check is surely
    // a stall. With few turns, nearly all of the time belongs to one of them.
    const isSpread = waitMs === checkEveryMs.idle && last.turns - turns > timerTurns
    const stalledMs = isSpread ? Math.min(tookMs, last.at - at - waitMs) : tookMs
    if (last.at - beganAt > periodMs) {
      beganAt = last.at
      longest = { current: 0, previous: longest.current }
    }
    longest.current = Math.max(longest.current, stalledMs)
    if (stalledMs > stallMs) stalls++
    waitMs = tookMs > waitMs * maxIdleShare ? checkEveryMs.busy : checkEveryMs.idle
    timer = setTimeout(check, waitMs).unref()
  }
  let timer = setTimeout(check, waitMs).unref()

  return {
    /** Seconds of the longest stall within the last one to two minutes. */
    findLongestSeconds: () => Math.max(longest.current, longest.previous) / 1000,
    /** Stalls of more than 50 ms since the start. */
    countStalls: () => stalls,
    close: () => clearTimeout(timer),
  }
}

function readOwnThreadMs(): number {
  const { user, system } = process.threadCpuUsage()
  return (user + system) / 1000
}

const windowMs = 60_000
const leastWindowBytes = 60 * 1024
const maxBodyMs = 3_600_000

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
      if (now - started >= maxBodyMs) return 'The body took more than an hour.'
      if (now - windowStart < windowMs) return undefined
      if (bytes < leastWindowBytes) return 'The body arrived at less than 1 KB a second.'
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
