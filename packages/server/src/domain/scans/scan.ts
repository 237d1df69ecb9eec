import type { ScanKind, ScanMode, ScanResult, ScanResultType } from '@assay/contract'
import { v7 } from 'uuid'
import { drawRandom } from '../accounts/keys.ts'
import { toIsoText } from '../clock.ts'

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

/** A scan as it is first recorded: with its result when the caller waited for it, otherwise pending. */
export type NewScan = Scan & { mode: ScanMode; region: string }

/** The fields that the result of a scan fills in. */
export type FinalResult = Pick<Scan, 'status' | 'signals' | 'metadata' | 'contentLength' | 'contentType'>

/** The fields of a scan that describe its content. */
export type ContentFields = Pick<Scan, 'contentLength' | 'contentType' | 'metadata'>

/** The content fields of a scan whose URL was not downloaded yet, or yielded nothing. */
export const unknownContentFields: ContentFields = {
  contentLength: 0,
  contentType: 'application/octet-stream',
  metadata: null,
}

/**
 * A UUID of version 7: it begins with the time, so that scans of the same time lie together in the index. The time is
 * the database's, because scans are partitioned by it and deleted with their partition.
 */
export const newScanId = (at: Date): string => v7({ msecs: at.getTime(), random: drawRandom(16) })

/** A scan in the form of the HTTP interface. All keys are present, except `content_name` when no name is known. */
export const toScanResult = (scan: Scan): ScanResult => ({
  id: scan.id,
  scan_type: scan.kind,
  status: scan.status,
  content_length: scan.contentLength,
  content_type: scan.contentType,
  signals: scan.signals,
  metadata: scan.metadata,
  created_at: toIsoText(scan.createdAt),
  completed_at: scan.completedAt === null ? null : toIsoText(scan.completedAt),
  ...(scan.contentName === null ? {} : { content_name: scan.contentName }),
})
