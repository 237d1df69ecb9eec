/** Resolves with the first signal to stop. A second signal ends the process at once. */
export function waitForStop(): Promise<NodeJS.Signals> {
  return new Promise((resolve) => {
    for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
      process.on(signal, () => {
        // Without a listener the next signal ends the process. npm forwards Ctrl-C a second time at once, so listeners
        // stay for a moment.
        setTimeout(() => process.removeAllListeners(signal), 500).unref()
        resolve(signal)
      })
    }
  })
}
