import type { Signal } from './exit-codes.ts'

const signals: Signal[] = ['SIGINT', 'SIGTERM', 'SIGHUP']

/** The first signal lets the work end in order; the second ends the process as if nobody had listened. */
export function openInterrupts() {
  const controller = new AbortController()
  let received: Signal | undefined
  const onSignal = (signal: NodeJS.Signals) => {
    if (received !== undefined) {
      close()
      process.kill(process.pid, signal)
      return
    }
    received = signal as Signal
    controller.abort()
  }
  const close = () => {
    for (const signal of signals) process.off(signal, onSignal)
  }
  for (const signal of signals) process.on(signal, onSignal)
  return { signal: controller.signal, received: () => received, close }
}
