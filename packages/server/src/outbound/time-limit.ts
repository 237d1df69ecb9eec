import { OutboundError } from './outbound-error.ts'

export type TimeLimit = {
  /** Aborts with the parent or when the time is over. Its reason is the error to throw. */
  readonly signal: AbortSignal
  /** Starts a new time limit, which replaces the previous one. */
  set(ms: number, sentence: string): void
  pause(): void
  /** Stops the timer and removes the listener from the parent. Must be called. */
  end(): void
}

/** A time limit that can be restarted and removed, as each chunk of a download needs; AbortSignal.timeout cannot. */
export function newTimeLimit(parent: AbortSignal): TimeLimit {
  const controller = new AbortController()
  let timer: NodeJS.Timeout | undefined
  const follow = () => controller.abort(parent.reason)
  if (parent.aborted) follow()
  else parent.addEventListener('abort', follow, { once: true })
  return {
    signal: controller.signal,
    set(ms, sentence) {
      clearTimeout(timer)
      timer = setTimeout(() => controller.abort(new OutboundError(sentence)), ms)
    },
    pause: () => clearTimeout(timer),
    end() {
      clearTimeout(timer)
      parent.removeEventListener('abort', follow)
    },
  }
}

/** Runs `work` within a time limit. When the time is over or the parent aborts, it throws that reason. */
export async function withinTime<T>(
  limit: { ms: number; signal: AbortSignal; sentence: string },
  work: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const time = newTimeLimit(limit.signal)
  time.set(limit.ms, limit.sentence)
  try {
    time.signal.throwIfAborted()
    return await work(time.signal)
  } catch (error) {
    time.signal.throwIfAborted()
    throw error
  } finally {
    time.end()
  }
}
