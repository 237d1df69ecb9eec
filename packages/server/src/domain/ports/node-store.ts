export type NodeEngine = { name: string; version: string | null; signaturesAt: string | null }

/** One process of the installation. */
export type AssayNode = {
  id: string
  /** Of its machine. */
  name: string
  roles: string[]
  version: string
  startedAt: Date
  /** As its own /readyz has it. */
  status: string
  reasons: string[]
  engines: NodeEngine[]
}

export type SeenNode = AssayNode & { seenAt: Date; isAlive: boolean }

export type NodeStore = {
  /** It is alive, and this is how it is. */
  see(node: AssayNode): Promise<void>
  leave(id: string): Promise<void>
  listNodes(): Promise<SeenNode[]>
  countWorkers(): Promise<number>
  /** Forgets those that have been silent for long; says how many. */
  deleteSilent(): Promise<number>
}
