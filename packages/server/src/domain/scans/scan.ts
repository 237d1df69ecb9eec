import type { ScanKind, ScanMode, ScanResult, ScanResultType } from '@assay/contract'
import { v7 } from 'uuid'
import { drawRandom } from '../draw-random.ts'

export type Scan = {
  id: string
  kind: ScanKind
  status: ScanResultType
  contentLength: number
  contentType: string
  contentName: string | null
  signals: string[] | null
  metadata: Record<string, string> | null
  createdAt: Date
  completedAt: Date | null
}

/**
 * A scan as it is recorded first: completed already when its caller waited for it, else pending. The content of a URL is
 * not known then: length 0, `application/octet-stream`.
 */
export type NewScan = Scan & { mode: ScanMode; region: string }

/** A number that begins with the time, so that rows of one time lie together. */
export const newScanId = (): string => v7({ random: drawRandom(16) })

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
