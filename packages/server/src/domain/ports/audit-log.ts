type AuditEntry = {
  /** A member's address, or what else acted. */
  actor: string
  /** What was done, such as `key.create`. */
  action: string
  target?: string | undefined
  accountId?: string | null | undefined
  detail?: string | undefined
  address?: string | undefined
}

export type AuditRecord = Omit<AuditEntry, 'accountId'> & { id: string; at: Date; accountName: string | null }

/** It only grows. */
export type AuditLog = {
  note(entry: AuditEntry): Promise<void>
  /** Newest first, from before that one. */
  list(options: { before: string | undefined; action: string | undefined; limit: number }): Promise<AuditRecord[]>
}
