import type { ScanKind, ScanResultType } from '@assay/contract'
import type { Scan } from '../scans/scan.ts'

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
