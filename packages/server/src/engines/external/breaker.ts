/** Failures in a row after which an engine is no longer asked by scans. */
const maxFailures = 3
/** Pause between two probes of an engine that does not answer. */
const probeEveryMs = 5000

type Deps = {
  /** Asks the engine for a harmless scan, and throws when it does not answer. */
  probe(): Promise<void>
  onOpen(reason: string): void
  onClose(): void
}

/**
 * A circuit breaker. After a few failures in a row it is open: scans fail without waiting for the engine, and the
 * service probes the engine at once and then every few seconds, until it answers. A scan that the content alone makes
 * fail opens it only for as long as one probe takes.
 */
export function makeBreaker({ probe, onOpen, onClose }: Deps) {
  let failuresInRow = 0
  let fault: string | undefined
  let isOpen = false
  let isClosed = false
  let timer: NodeJS.Timeout | undefined

  function noteSuccess() {
    failuresInRow = 0
    fault = undefined
    if (!isOpen) return
    isOpen = false
    onClose()
  }

  function noteFailure(reason: string) {
    failuresInRow++
    fault = reason
    if (isOpen || isClosed || failuresInRow < maxFailures) return
    isOpen = true
    onOpen(reason)
    void tryAgain()
  }

  async function tryAgain() {
    try {
      await probe()
      noteSuccess()
    } catch (error) {
      fault = (error as Error).message
      if (isClosed) return
      timer = setTimeout(tryAgain, probeEveryMs)
      timer.unref()
    }
  }

  return {
    isOpen: () => isOpen,
    findFault: () => fault,
    noteSuccess,
    noteFailure,
    close() {
      isClosed = true
      clearTimeout(timer)
    },
  }
}
