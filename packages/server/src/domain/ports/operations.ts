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
