import type { ScanKind } from '@assay/contract'

export type QueuedJob = {
  id: string
  accountId: string
  accountName: string
  kind: ScanKind
  state: 'waiting' | 'running' | 'paused'
  attempts: number
  contentLength: number
  createdAt: Date
  heldUntil: Date | null
}

export type FailingHost = {
  host: string
  endpoints: number
  waiting: number
  dead: number
  failingSince: Date | null
  paused: boolean
}

/** Jobs, receivers and the database as operators see and change them. Content is never shown. */
export type Operations = {
  /**
   * Oldest first, beginning after the job `after`. A `stuck` job was tried before, or has waited for `stuckMs`.
   */
  listJobs(filter: {
    state: QueuedJob['state'] | 'stuck' | undefined
    stuckMs: number
    after: string | undefined
    limit: number
  }): Promise<QueuedJob[]>
  /**
   * Ends the pause of a job. Returns false when it is not paused: it runs, waits already, or does not exist any more.
   */
  releaseJob(id: string): Promise<boolean>
  /** Counts deliveries that were created within that time. */
  listFailingHosts(withinMs: number): Promise<FailingHost[]>
  /** Pauses or resumes all endpoints of a host, and returns how many. */
  pauseHost(host: string, paused: boolean): Promise<number>
  listFailedDeliveries(host: string, since: Date, limit: number): Promise<string[]>
  describeDatabase(): Promise<{ version: string; bytes: number; connections: number }>
}

type NodeEngine = {
  name: string
  version: string | null
  signaturesAt: string | null
  /** The reason why malware scans of the node are degraded; absent for image engines and while they are not. */
  degraded?: string | undefined
}

/** A process of the installation. */
export type AssayNode = {
  id: string
  /** Host name of its machine. */
  name: string
  roles: string[]
  version: string
  startedAt: Date
  /** Status of its own /readyz. */
  status: string
  reasons: string[]
  /** Sentences about what is wrong, by the name of the check. */
  faults: Record<string, string>
  engines: NodeEngine[]
}

export type NodeStatus = AssayNode & { seenAt: Date; isAlive: boolean }

export type NodeStore = {
  /** Records that the node is alive, and its state. */
  recordHeartbeat(node: AssayNode): Promise<void>
  removeNode(id: string): Promise<void>
  listNodes(): Promise<NodeStatus[]>
  countWorkers(): Promise<number>
  /** Deletes nodes without a heartbeat for an hour, and returns how many. */
  deleteSilent(): Promise<number>
}

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
