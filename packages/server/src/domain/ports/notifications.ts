/** `jobs`, `remote scans`: there is something to take. `completed`: these scans and remote scans have ended. */
export type Topic = 'jobs' | 'remote-scans' | 'completed'

/**
 * Words between processes, so that nobody has to look all the time. They may get lost: whoever waits for one looks by
 * himself now and then, more often while `isListening` is false.
 */
export type Notifications = {
  send(topic: Topic, id?: string): void
  /** `hear` gets the ids that were told of, if any. */
  on(topic: Topic, hear: (ids: string[]) => void): void
  isListening(): boolean
}
