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
