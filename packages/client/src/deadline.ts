import { Aborted, TimedOut } from './errors.ts'

/** A signal that aborts with the caller's signal or after `timeoutMs`. Node 18 lacks AbortSignal.any. */
export function openDeadline(callerSignal: AbortSignal | undefined, timeoutMs: number, toMessage: () => string) {
  const controller = new AbortController()
  const endsAt = Date.now() + timeoutMs
  const abort = () => controller.abort(toAborted(callerSignal?.reason))
  if (callerSignal?.aborted) abort()
  callerSignal?.addEventListener('abort', abort)
  // A timer of more than 2^31 - 1 ms would fire immediately.
  const timer = setTimeout(() => controller.abort(new TimedOut(toMessage())), Math.min(timeoutMs, 2 ** 31 - 1))
  return {
    signal: controller.signal,
    leftMs: () => endsAt - Date.now(),
    close() {
      clearTimeout(timer)
      callerSignal?.removeEventListener('abort', abort)
    },
  }
}

export type Deadline = ReturnType<typeof openDeadline>

/** Rejects when the signal aborts, even if the promise ignores the signal, as a stalled stream does. */
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

/** Tells `AbortSignal.timeout` from a signal that the caller aborted. The reason of an outer deadline stays as it is. */
const toAborted = (reason: unknown) => {
  if (reason instanceof TimedOut || reason instanceof Aborted) return reason
  return reason instanceof Error && reason.name === 'TimeoutError'
    ? new TimedOut('The timeout of the signal expired. The service may have processed the request.', { cause: reason })
    : new Aborted('The signal aborted the call. The service may have processed the request.', { cause: reason })
}
