import { setMaxListeners } from 'node:events'
import type { Signal } from './exit-codes.ts'

const signals: Signal[] = ['SIGINT', 'SIGTERM', 'SIGHUP']

/** The first signal ends the run in order; a second one terminates the process immediately. */
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

/** Ends the run after an interrupt or for a reason, such as a rejected key. Only the first reason is kept. */
export function newStop(interrupted: AbortSignal) {
  const controller = new AbortController()
  const { signal } = controller
  // Every scan in progress listens to this signal, which some versions of Node report as a leak.
  setMaxListeners(0, signal)
  let reason: string | undefined
  interrupted.addEventListener('abort', () => controller.abort())
  return {
    signal,
    reason: () => reason,
    stopFor(message: string) {
      reason ??= message
      controller.abort()
    },
  }
}
