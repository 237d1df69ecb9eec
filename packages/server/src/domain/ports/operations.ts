import type { ScanKind } from '@assay/contract'

export type JobSeen = {
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

/** What operators look at and put right. Never content. */
export type Operations = {
  /** Oldest first, from after that one. `stuck`: tried before, or waiting since before `stuckSince`. */
  listJobs(filter: {
    state: JobSeen['state'] | 'stuck' | undefined
    stuckSince: Date
    after: string | undefined
    limit: number
  }): Promise<JobSeen[]>
  /** Lets a job that is held be taken at once. False when nobody holds it back: it runs, waits already or is gone. */
  releaseJob(id: string): Promise<boolean>
  listFailingHosts(since: Date): Promise<FailingHost[]>
  /** All receivers of that host; says how many. */
  pauseHost(host: string, paused: boolean): Promise<number>
  listFailedAt(host: string, since: Date, limit: number): Promise<string[]>
  describeDatabase(): Promise<{ version: string; bytes: number; connections: number }>
}
