/** Returns a function that runs `work`. Calls during a run share the next run, which begins after them. */
export function makeOneAtATime(work: () => Promise<void>): () => Promise<void> {
  let running: Promise<void> = Promise.resolve()
  let next: Promise<void> | undefined
  return () => {
    next ??= running
      .catch(() => {})
      .then(() => {
        next = undefined
        running = work()
        return running
      })
    return next
  }
}
