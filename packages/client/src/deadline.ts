import { Aborted, TimedOut } from './errors.ts'

/** A signal that follows the caller's and the clock. AbortSignal.any would do it, but not in Node 18. */
export function openDeadline(given: AbortSignal | undefined, timeoutMs: number, toLate: () => string) {
  const controller = new AbortController()
  const endsAt = Date.now() + timeoutMs
  const abort = () => controller.abort(toAborted(given?.reason))
  if (given?.aborted) abort()
  given?.addEventListener('abort', abort)
  // Timers hold 2^31 - 1 ms, and fire at once when they are given more.
  const timer = setTimeout(() => controller.abort(new TimedOut(toLate())), Math.min(timeoutMs, 2 ** 31 - 1))
  return {
    signal: controller.signal,
    leftMs: () => endsAt - Date.now(),
    close() {
      clearTimeout(timer)
      given?.removeEventListener('abort', abort)
    },
  }
}

export type Deadline = ReturnType<typeof openDeadline>

/** Whatever the other does about the signal: a stream that gives nothing more does not even notice it. */
export async function untilAborted<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
  let stop = () => {}
  const aborted = new Promise<never>((_resolve, reject) => {
    stop = () => reject(signal.reason)
    signal.addEventListener('abort', stop)
  })
  try {
    return await Promise.race([promise, aborted])
  } finally {
    signal.removeEventListener('abort', stop)
  }
}

export async function wait(ms: number, signal: AbortSignal): Promise<void> {
  await new Promise<void>((resolve) => {
    if (signal.aborted) return resolve()
    const end = () => {
      clearTimeout(timer)
      signal.removeEventListener('abort', end)
      resolve()
    }
    const timer = setTimeout(end, ms)
    signal.addEventListener('abort', end)
  })
  if (signal.aborted) throw signal.reason
}

/** `AbortSignal.timeout` is a clock as well. */
const toAborted = (reason: unknown) =>
  reason instanceof Error && reason.name === 'TimeoutError'
    ? new TimedOut('The time that the signal gave is over. Nothing is known of the outcome.', { cause: reason })
    : new Aborted('The call was aborted by its signal. Nothing is known of the outcome.', { cause: reason })
