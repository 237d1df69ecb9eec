type Close = () => void | Promise<void>

/** Collects what must be closed. Parts close in reverse order, each even when another fails; then the first failure is thrown. */
export function newClosers() {
  const closers: Close[] = []

  return {
    add(close: Close) {
      closers.push(close)
    },
    async closeAll() {
      const failures: unknown[] = []
      for (let close = closers.pop(); close !== undefined; close = closers.pop()) {
        try {
          await close()
        } catch (error) {
          failures.push(error)
        }
      }
      if (failures.length > 0) throw failures[0]
    },
  }
}

export type Closers = ReturnType<typeof newClosers>

/** Calls `open`, which adds a closer for each part that it opens. When `open` fails, the parts opened so far are closed. */
export async function openParts<T>(open: (closers: Closers) => Promise<T>): Promise<T> {
  const closers = newClosers()
  try {
    return await open(closers)
  } catch (error) {
    await closers.closeAll()
    throw error
  }
}

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
