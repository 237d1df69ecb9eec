import type { ScanKind } from '@assay/contract'

type VerdictCounts = { clean: number; threat: number; error: number }

/** Work of a process within a period of about a minute. */
export type NodeActivity = {
  scans: Record<ScanKind, VerdictCounts>
  engineMs: Record<ScanKind, number>
  /** Synchronous scans by the time of their response: one count for each bound of the histogram, and one beyond. */
  latency: number[]
  deliveries: { delivered: number; failed: number }
}

/** State at the end of the period. The queue is that of the whole installation. */
export type NodeSample = { memoryBytes: number; queue: { waiting: number; oldestSeconds: number } }

/** The hour by minute, or the day by quarter of an hour. The last step is the current one. */
export type ActivitySpan = { steps: number; stepSeconds: number }

type Step = {
  at: Date
  scans: Record<ScanKind, VerdictCounts>
  latency: number[]
  deliveries: { delivered: number; failed: number }
}

/** All nodes together. The queue and the memory are the highest of the step; null when no node recorded any. */
export type ServiceStep = Step & {
  engineMs: Record<ScanKind, number>
  memoryBytes: number | null
  queue: { waiting: number; oldestSeconds: number } | null
}

/**
 * The latency of an account is the time from the request or submit to the verdict. The queue is that at the end of the
 * step: background scans without a verdict, and the age of the oldest.
 */
export type AccountStep = Step & { queue: { waiting: number; oldestSeconds: number } }

export type ActivityStore = {
  /** Adds to the minute that was `agoMs` ago, by the clock of the database. */
  record(nodeId: string, activity: NodeActivity & NodeSample, agoMs: number): Promise<void>
  /** Oldest first, without gaps. */
  listServiceSteps(span: ActivitySpan): Promise<ServiceStep[]>
  listAccountSteps(accountId: string, span: ActivitySpan): Promise<AccountStep[]>
  /** Background scans of an account that wait for a worker; at most `most` are counted. */
  countJobsOf(accountId: string, most: number): Promise<{ waiting: number; oldestSeconds: number }>
  deleteOld(days: number): Promise<number>
}
