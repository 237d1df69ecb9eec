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
