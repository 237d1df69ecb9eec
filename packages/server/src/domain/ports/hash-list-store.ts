export type HashVerdict = 'bad' | 'good'

/** `import`: scans look its hashes up. `signatures`: the hashes of a signature file, which the engines find. */
type HashListOrigin = 'import' | 'signatures'

export type HashList = {
  id: string
  name: string
  verdict: HashVerdict
  origin: HashListOrigin
  hashes: number
  createdBy: string
  activatedAt: Date
}

/** A hash in an active list. */
export type KnownHash = {
  verdict: HashVerdict
  /** The name of the malware or program; null when the list gives none. */
  name: string | null
  list: string
}

/** The imported lists that are active: which verdicts they have, and a text that changes whenever one of them does. */
export type ActiveHashLists = { verdicts: HashVerdict[]; version: string }

/**
 * Rows as lines: `\x`, the 64 hexadecimal digits of the hash, a tab, and the name in UTF-8, empty for none. Names have no
 * control characters.
 */
type HashBatch = { rows: Buffer; count: number }

/** Lists of known hashes, of up to many millions of rows. */
export type HashListStore = {
  /** Active lists by name. */
  listActive(): Promise<HashList[]>
  findActive(): Promise<ActiveHashLists>
  /** The entry that counts for scans: a bad one before a good one. */
  findHash(sha256: string): Promise<KnownHash | undefined>
  /** All entries of active lists, those of signature files too. */
  listMatches(sha256: string): Promise<KnownHash[]>
  /** Makes a list that counts for nothing until it is activated. Returns its id. */
  beginImport(list: Pick<HashList, 'name' | 'verdict' | 'origin' | 'createdBy'>): Promise<string>
  /** Collects hashes for the list. Throws when the import counts as abandoned. */
  addHashes(listId: string, batch: HashBatch): Promise<void>
  /** Makes the collected hashes rows of the list, each of them once. */
  sortHashes(listId: string): Promise<{ hashes: number; duplicates: number }>
  /**
   * Makes the list count at once, in place of an active one of the same name, which is returned. Results of the hashes
   * of both are revised.
   */
  activate(listId: string): Promise<{ list: HashList; replaced: HashList | undefined }>
  /** Ends an import that was not activated. Nothing remains of it but sorted hashes, which are deleted later. */
  abandon(listId: string): Promise<void>
  /** Returns false when there is no such active list. Results of its hashes are revised. */
  remove(origin: HashListOrigin, name: string): Promise<boolean>
  /** Deletes the hashes of removed lists and abandoned imports, and returns how many. */
  deleteRemoved(): Promise<number>
}

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
