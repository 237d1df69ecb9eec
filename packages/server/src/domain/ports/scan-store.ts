import type { ScanKind } from '@assay/contract'
import type { NewScan, Scan } from '../scans/scan.ts'

export type ScanStore = {
  /** Within the account and the kind: another account's scan, or one of the other kind, is not there. */
  findScan(accountId: string, kind: ScanKind, id: string): Promise<Scan | undefined>
  /** Records a scan that ended by our own fault, and charges nothing. */
  recordFailure(accountId: string, scan: NewScan): Promise<void>
  /** Results since that time, of scans that nobody waited for. */
  countCompleted(since: Date): Promise<number>
  /** Makes room for the results of the next days. */
  prepare(resultDays: number): Promise<void>
  /** Forgets results that were completed so long ago, some of them a little later; says about how many. */
  deleteCompleted(resultDays: number): Promise<number>
  /** Puts the debits and refunds of results that are forgotten together, by day; says how many. */
  foldLedger(resultDays: number): Promise<number>
}
