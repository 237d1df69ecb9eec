import type { ScanResult } from '@assay/contract'
import type { Scan } from './scan.ts'

/** A scan as it goes over the wire. All keys are always there; the name only when one is known. */
export const toScanResult = (scan: Scan): ScanResult => ({
  id: scan.id,
  scan_type: scan.kind,
  status: scan.status,
  content_length: scan.contentLength,
  content_type: scan.contentType,
  signals: scan.signals,
  metadata: scan.metadata,
  created_at: scan.createdAt.toISOString(),
  completed_at: scan.completedAt?.toISOString() ?? null,
  ...(scan.contentName === null ? {} : { content_name: scan.contentName }),
})
