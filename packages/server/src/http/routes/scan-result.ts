import type { ScanKind } from '@assay/contract'
import { toScanResult } from '../../domain/scans/scan-result.ts'
import type { Scanning } from '../../domain/scans/scanning.ts'
import { getCaller } from '../hooks/admit.ts'
import type { Handler } from './handler.ts'

export function makeResultHandler(target: { kind: ScanKind }, deps: { scanning: Scanning }): Handler {
  return async (request) => {
    const { id } = request.params as { id: string }
    return toScanResult(await deps.scanning.getScan(getCaller(request).accountId, target.kind, id))
  }
}
