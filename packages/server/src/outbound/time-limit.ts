import { OutboundError } from './outbound-error.ts'

export type TimeLimit = {
  /** Aborted when the parent is, or when the time is over; its reason is what to throw. */
  readonly signal: AbortSignal
  /** From now on, instead of any time that was set before. */
  set(ms: number, sentence: string): void
  pause(): void
  /** Lets go of the parent. Must be called. */
  end(): void
}

/** AbortSignal.any and AbortSignal.timeout cannot be set anew or let go of, and a download needs both per chunk. */
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

/** What `work` gives, unless the time is over or the parent aborted first: then that is what is thrown. */
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
