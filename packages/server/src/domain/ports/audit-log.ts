type AuditEntry = {
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

/** Entries are added and never changed or deleted. */
export type AuditLog = {
  note(entry: AuditEntry): Promise<void>
  /** Entries of one account with one of these actions, after `since`, newest first. */
  listOfAccount(
    accountId: string,
    options: { actions: string[]; since: Date | null; limit: number },
  ): Promise<AuditRecord[]>
  /** Newest first, beginning after the entry `before`. */
  list(options: { before: string | undefined; action: string | undefined; limit: number }): Promise<AuditRecord[]>
}
