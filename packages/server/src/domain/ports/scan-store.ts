import type { ScanKind } from '@assay/contract'
import type { NewScan, Scan } from '../scans/scan.ts'

export type ScanStore = {
  /** Within the account and the kind: another account's scan, or one of the other kind, is not there. */
  findScan(accountId: string, kind: ScanKind, id: string): Promise<Scan | undefined>
  /** Records a scan that ended by our own fault, and charges nothing. */
  recordFailure(accountId: string, scan: NewScan): Promise<void>
  /** Results since that time, of scans that nobody waited for. */
  countSettled(since: Date): Promise<number>
  /** Forgets results that were settled before that time; says how many. */
  deleteSettled(before: Date): Promise<number>
}
