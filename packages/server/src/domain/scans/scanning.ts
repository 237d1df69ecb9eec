import type { ScanKind } from '@assay/contract'
import { validate as isUuid } from 'uuid'
import type { ScanStore } from '../ports/scan-store.ts'
import { Problem } from '../problem.ts'
import type { Scan } from './scan.ts'

export function makeScanning(deps: { scans: ScanStore }) {
  return {
    /** One answer for all that is not there: no job, another account's, the other kind, not even an identifier. */
    async getScan(accountId: string, kind: ScanKind, id: string): Promise<Scan> {
      const scan = isUuid(id) ? await deps.scans.findScan(accountId, kind, id) : undefined
      if (scan !== undefined) return scan
      throw new Problem({ kind: 'validation', errors: { id: ['The job could not be found.'] } })
    },

    /** Honest until engines are installed: what is not scanned gets no verdict, no job and no charge. */
    requireEngine(kind: ScanKind): never {
      const what = kind === 'malware' ? 'malware' : 'NSFW image'
      throw new Problem({ kind: 'engine-unavailable', detail: `No ${what} engine is installed. Nothing was charged.` })
    },
  }
}

export type Scanning = ReturnType<typeof makeScanning>
