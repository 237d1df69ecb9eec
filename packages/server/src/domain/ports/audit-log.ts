export type AuditEntry = {
  /** Email address of a member, or the name of the program that acted. */
  actor: string
  /** Name of the action, such as `key.create`. */
  action: string
  target?: string | undefined
  accountId?: string | null | undefined
  detail?: string | undefined
  address?: string | undefined
}

export type AuditRecord = Omit<AuditEntry, 'accountId'> & { id: string; at: Date; accountName: string | null }

/** The number and the hash of the last entry, which depends on all entries before. */
export type AuditHead = { id: number; hash: string }

/** `head` is the last entry up to which the log is complete and unchanged; `fault` says what is wrong behind it. */
export type AuditVerification = { rows: number; head: AuditHead; fault: string | undefined }

type AuditFilter = {
  /** First part of the name of the action. */
  action?: string | undefined
  /** Part of the name of the actor. */
  actor?: string | undefined
  from?: Date | undefined
  /** Exclusive end of the range. */
  to?: Date | undefined
}

/** Entries are added and never changed or deleted. */
export type AuditLog = {
  /**
   * Commits what `work` changes in the database together with the entries that it notes, so that a crash leaves neither
   * without the other. `work` waits for nothing but the database, and notes its entries last: each entry locks the log
   * until the commit.
   */
  atomically<Result>(work: () => Promise<Result>): Promise<Result>
  note(entry: AuditEntry): Promise<void>
  /** Checks that no entry was changed or removed, and that the log contains the head `anchor`. */
  verify(anchor?: AuditHead): Promise<AuditVerification>
  /** Entries of one account with one of these actions, after `since`, newest first. */
  listOfAccount(
    accountId: string,
    options: { actions: string[]; since: Date | null; limit: number },
  ): Promise<AuditRecord[]>
  /** Newest first, beginning after the entry `before`. */
  list(filter: AuditFilter, page: { before: string | undefined; limit: number }): Promise<AuditRecord[]>
}
