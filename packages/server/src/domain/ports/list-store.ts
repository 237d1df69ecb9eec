export type ListEntry = {
  id: string
  list: 'allow' | 'block'
  matches: 'sha256' | 'signal'
  /** A SHA-256 hash, or a signal as results show it. */
  value: string
  reason: string
  createdBy: string
  createdAt: Date
  expiresAt: Date | null
}

/** Hashes and signals that operators allow or block, whatever the engines report. */
export type ListStore = {
  /** Entries that have not expired, newest first. */
  listEntries(now: Date): Promise<ListEntry[]>
  /** Replaces an entry with the same list, type and value. */
  addEntry(entry: ListEntry): Promise<void>
  /** Returns false when there is no such entry. */
  removeEntry(id: string): Promise<boolean>
  deleteExpired(before: Date): Promise<number>
}
