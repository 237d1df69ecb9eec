import { Overloaded, RateLimited } from '@assay/client'
import { wait } from '../wait.ts'

/** Longer pauses are left to the person. */
const maxPauseSeconds = 600
const maxTries = 1000

/**
 * A service that is asked too often says when to come again. All who ask wait until then, however often that is: a tree
 * of files takes as long as the rate of its account allows.
 */
export function makePatience({ signal, tell }: { signal: AbortSignal; tell(sentence: string): void }) {
  let pausedUntil = 0
  return async function insist<T>(call: () => Promise<T>): Promise<T> {
    for (let tries = 1; ; tries++) {
      await wait(pausedUntil - Date.now(), signal)
      try {
        return await call()
      } catch (error) {
        if (!(error instanceof RateLimited || error instanceof Overloaded)) throw error
        const { retryAfter } = error
        if (retryAfter === undefined || retryAfter > maxPauseSeconds || tries === maxTries || signal.aborted)
          throw error
        if (pausedUntil < Date.now()) {
          tell(
            `${error instanceof RateLimited ? 'The rate of this key is used up' : 'The service is busy'}. Going on in ${Math.ceil(retryAfter)} s.`,
          )
        }
        pausedUntil = Math.max(pausedUntil, Date.now() + retryAfter * 1000)
      }
    }
  }
}
