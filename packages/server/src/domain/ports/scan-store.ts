import type { ScanKind } from '@assay/contract'
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
