export type ListEntry = {
  id: string
  list: 'allow' | 'block'
  matches: 'sha256' | 'signal'
  /** A hash, or a signal as results show it. */
  value: string
  reason: string
  createdBy: string
  createdAt: Date
  expiresAt: Date | null
}

/** What operators allow or block, whatever the engines say. */
export type ListStore = {
  /** Those that have not expired, newest first. */
  listEntries(now: Date): Promise<ListEntry[]>
  /** Takes the place of one with the same list and value. */
  addEntry(entry: ListEntry): Promise<void>
  /** False when there is no such entry. */
  removeEntry(id: string): Promise<boolean>
  deleteExpired(before: Date): Promise<number>
}
