import type { ScanKind, ScanResultType } from '@assay/contract'
import type { Scan } from '../scans/scan.ts'

export type HistoryFilter = {
  status?: ScanResultType | undefined
  kind?: ScanKind | undefined
  keyId?: string | undefined
  from?: Date | undefined
  /** Up to, but not including. */
  to?: Date | undefined
  sha256?: string | undefined
}

export type RecordedScan = Scan & { keyName: string | null }

export type Counts = Record<ScanResultType, number>

export type UsageRow = Counts & { day: string; kind: ScanKind; keyName: string | null }

export type Refusals = { day: string; status: number; count: number }

/** What an account has scanned, for people to look through. */
export type ScanHistory = {
  /** Newest first, from before that one. */
  list(
    accountId: string,
    filter: HistoryFilter,
    page: { before: string | undefined; limit: number },
  ): Promise<RecordedScan[]>
  find(accountId: string, id: string): Promise<RecordedScan | undefined>
  /** By day of UTC, kind and key. */
  countByDay(accountId: string, since: Date): Promise<UsageRow[]>
  listRefusals(accountId: string, since: Date): Promise<Refusals[]>
  countWebhooks(accountId: string, since: Date): Promise<{ delivered: number; failed: number; waiting: number }>
  /** When the attempts at its deliveries were made, and how they ended. */
  listDeliveriesOf(
    accountId: string,
    scanId: string,
  ): Promise<{ id: string; url: string; createdAt: Date; state: string }[]>
}

/** Refusals are counted in memory and written now and then: a refused request must cost nothing. */
export type RejectedRequestStore = {
  add(counts: { accountId: string; day: string; status: number; count: number }[]): Promise<void>
  deleteOld(before: Date): Promise<number>
}
