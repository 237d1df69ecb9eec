/** `jobs`, `errands`: there is something to take. `settled`: these scans and errands have ended. */
export type Topic = 'jobs' | 'errands' | 'settled'

/**
 * Words between processes, so that nobody has to look all the time. They may get lost: whoever waits for one looks by
 * himself now and then, more often while `isListening` is false.
 */
export type WakeUps = {
  tell(topic: Topic, id?: string): void
  /** `hear` gets the ids that were told of, if any. */
  on(topic: Topic, hear: (ids: string[]) => void): void
  isListening(): boolean
}
