/** Errors that end a command which runs until it is interrupted, because waiting does not resolve them. */
export const permanentErrors = ['Unauthorized', 'NotPermitted', 'NotFound', 'UnexpectedAnswer']
/** Errors after which such a command pauses and tries again. */
export const transientErrors = [
  'ConnectionFailed',
  'OutOfCredits',
  'RateLimited',
  'Overloaded',
  'ServerError',
  'TimedOut',
]
const firstPauseMs = 2000
const maxPauseMs = 60_000

export type Notice = (message: string) => void

/** Pauses all calls after a transient error, longer after each one in a row. */
export function makeBackoff(notice: Notice) {
  let pauseMs = 0
  let pausedUntil = 0
  return {
    pausedUntil: () => pausedUntil,
    fail(reason: string) {
      if (pausedUntil > Date.now()) return
      if (pauseMs === 0) notice(`${reason} Retrying until the service recovers.`)
      pauseMs = Math.min(maxPauseMs, Math.max(firstPauseMs, pauseMs * 2))
      pausedUntil = Date.now() + pauseMs
    },
    succeed() {
      if (pauseMs > 0) notice('The service has recovered.')
      pauseMs = 0
    },
  }
}
