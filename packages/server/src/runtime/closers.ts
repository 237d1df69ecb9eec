type Close = () => void | Promise<void>

/** What was opened last is closed first, each one even when another fails; the first failure is thrown at the end. */
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
