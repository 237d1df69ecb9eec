import type { ScanKind } from '@assay/contract'
import type { Scan } from '../scans/scan.ts'

export type ScanStore = {
  /** Within the account and the kind: another account's scan, or one of the other kind, is not there. */
  findScan(accountId: string, kind: ScanKind, id: string): Promise<Scan | undefined>
}
