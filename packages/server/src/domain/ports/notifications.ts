/**
 * `jobs`, `remote-scans`: there is work to claim. `completed`: the scans and remote scans with these ids have ended.
 * `signatures`: the operator's signature files have changed. `hash-lists`: lists of known hashes, or entries of the
 * allow and block lists, have changed. `sources`: the update of a source of signatures is due.
 */
export type Topic = 'jobs' | 'remote-scans' | 'completed' | 'signatures' | 'hash-lists' | 'sources'

/**
 * Messages between processes, so that they need not poll all the time. A message may be lost, so receivers still poll
 * at intervals, and more often while `isListening` is false.
 */
export type Notifications = {
  send(topic: Topic, id?: string): void
  /** `receive` gets the ids that were sent, if any. */
  on(topic: Topic, receive: (ids: string[]) => void): void
  isListening(): boolean
}
