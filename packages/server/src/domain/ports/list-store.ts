/** An entry as operators add it. */
export type NewListEntry = Omit<ListEntry, 'createdAt'>

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
  listEntries(): Promise<ListEntry[]>
  /** Replaces an entry with the same list, type and value. Returns the entry with the time of its creation. */
  addEntry(entry: NewListEntry): Promise<ListEntry>
  /** Returns false when there is no such entry. */
  removeEntry(id: string): Promise<boolean>
  deleteExpired(): Promise<number>
}
