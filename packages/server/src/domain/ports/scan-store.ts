import type { ScanKind, ScanResultType } from '@assay/contract'
import type { NewScan, Scan } from '../scans/scan.ts'

export type ScanStore = {
  /** Finds the scan only under its own account and kind. */
  findScan(accountId: string, kind: ScanKind, id: string): Promise<Scan | undefined>
  /** Records a scan that failed because of Assay, and charges nothing. */
  recordFailure(accountId: string, scan: NewScan): Promise<void>
  /** Counts background scans that were completed within that time. */
  countCompleted(withinMs: number): Promise<number>
  /** Creates the partitions for the results of the next days. */
  createPartitions(resultDays: number): Promise<void>
  /**
   * Deletes results that were completed more than `resultDays` days ago; some stay a little longer. Their debits stay in
   * the ledger, as totals per day. Returns roughly how many.
   */
  deleteCompleted(resultDays: number): Promise<number>
  /** Replaces the refunds of old results by totals per day. Returns how many it replaced. */
  foldLedger(resultDays: number): Promise<number>
}

export type HistoryFilter = {
  status?: ScanResultType | undefined
  kind?: ScanKind | undefined
  keyId?: string | undefined
  from?: Date | undefined
  /** Exclusive end of the range. */
  to?: Date | undefined
  sha256?: string | undefined
  /** Part of the file name. */
  name?: string | undefined
}

export type RecordedScan = Scan & { keyName: string | null }

export type Counts = Record<ScanResultType, number>

type UsageRow = Counts & { day: string; kind: ScanKind; keyName: string | null }

/** How many requests of a day got this HTTP status. */
type RejectedRequests = { day: string; status: number; count: number }

/** Scans, usage and deliveries of an account, as the console shows them. */
export type ScanHistory = {
  /** Newest first, beginning after the scan `before`. */
  list(
    accountId: string,
    filter: HistoryFilter,
    page: { before: string | undefined; limit: number },
  ): Promise<RecordedScan[]>
  find(accountId: string, id: string): Promise<RecordedScan | undefined>
  /** Counts by day in UTC, kind and key. */
  countByDay(accountId: string, since: Date): Promise<UsageRow[]>
  listRejectedRequests(accountId: string, since: Date): Promise<RejectedRequests[]>
  countWebhooks(accountId: string, since: Date): Promise<{ delivered: number; failed: number; waiting: number }>
  /** The revisions of a scan, oldest first. */
  listRevisionsOf(scanId: string): Promise<{ status: string; reason: string; at: Date }[]>
  /** The webhook deliveries of a scan, oldest first. */
  listDeliveriesOf(
    accountId: string,
    scanId: string,
  ): Promise<{ id: string; url: string; createdAt: Date; state: string }[]>
}

/**
 * Counts of rejected requests. They are collected in memory and written at intervals, so that rejecting stays cheap.
 */
export type RejectedRequestStore = {
  /** Adds to the counts of the current day; an account and a status occur once. */
  add(counts: { accountId: string; status: number; count: number }[]): Promise<void>
  /** Deletes the counts of days that are longer ago than this. */
  deleteOld(days: number): Promise<number>
}

type VerdictCounts = { clean: number; threat: number; error: number }

/** Work of a process within a period of about a minute. */
export type NodeActivity = {
  scans: Record<ScanKind, VerdictCounts>
  engineMs: Record<ScanKind, number>
  /** Synchronous scans by the time of their response: one count for each bound of the histogram, and one beyond. */
  latency: number[]
  deliveries: { delivered: number; failed: number }
}

type QueueState = { waiting: number; oldestSeconds: number }

/** State of a process at the end of the period. The queue is that of the whole installation. */
export type NodeSample = { memoryBytes: number; queue: QueueState }

/** The steps of a chart: the hour by minute, or the day by quarter of an hour. The last step is the current one. */
export type ActivitySpan = { steps: number; stepSeconds: number }

type ActivityStep = { at: Date } & Pick<NodeActivity, 'scans' | 'latency' | 'deliveries'>

/** All nodes together. The queue and the memory are the highest of the step; null when no node recorded any. */
export type ServiceStep = ActivityStep & {
  engineMs: Record<ScanKind, number>
  memoryBytes: number | null
  queue: QueueState | null
}

/**
 * The latency of an account is the time from the request or submit to the verdict. The queue is that at the end of the
 * step: background scans without a verdict, and the age of the oldest.
 */
export type AccountStep = ActivityStep & { queue: QueueState }

export type ActivityStore = {
  /** Adds to the minute that was `agoMs` ago, by the clock of the database. */
  record(nodeId: string, activity: NodeActivity & NodeSample, agoMs: number): Promise<void>
  /** Oldest first, without gaps. */
  listServiceSteps(span: ActivitySpan): Promise<ServiceStep[]>
  listAccountSteps(accountId: string, span: ActivitySpan): Promise<AccountStep[]>
  /** Background scans of an account that wait for a worker; at most `most` are counted. */
  countJobsOf(accountId: string, most: number): Promise<QueueState>
  deleteOld(days: number): Promise<number>
}
