/** Resolves with the first signal that asks us to stop. A second one means now: the process ends on the spot. */
export function waitForStop(): Promise<NodeJS.Signals> {
  return new Promise((resolve) => {
    for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
      process.on(signal, () => {
        // Without our listener the next one takes its default course. npm passes Ctrl-C on a second time at once,
        // so the next one only counts after a moment.
        setTimeout(() => process.removeAllListeners(signal), 500).unref()
        resolve(signal)
      })
    }
  })
}
