/**
 * `freeFailures` cause no pause; each failure beyond them doubles it, up to the longest. `memoryMs` without an attempt
 * resets the count.
 */
export type AttemptLimits = { freeFailures: number; firstPauseMs: number; longestPauseMs: number; memoryMs: number }

/** Failed attempts to guess a secret, by subject. */
export type AttemptStore = {
  /**
   * Counts an attempt as failed before its result is known, so that concurrent attempts count like successive ones.
   * During the pause after earlier failures it counts nothing and returns how long to wait.
   */
  countAttempt(subject: string, limits: AttemptLimits): Promise<{ waitMs: number } | undefined>
  /** How long the pause of a subject still lasts; undefined when there is none. */
  findPause(subject: string, limits: AttemptLimits): Promise<{ waitMs: number } | undefined>
  /** Takes back one attempt that did not fail. */
  uncountAttempt(subject: string): Promise<void>
  forgetFailures(subject: string): Promise<void>
}
