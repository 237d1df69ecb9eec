import type { NewScan, Scan } from '../domain/scans/scan.ts'

/** How scans travel to the database: an array of these as one JSON parameter, read by `scanRecord`. */
export const toScanColumns = (scan: NewScan) => ({
  ...{ id: scan.id, kind: scan.kind, mode: scan.mode, region: scan.region, status: scan.status },
  ...{ content_length: scan.contentLength, content_type: scan.contentType, content_name: scan.contentName },
  ...{ signals: scan.signals, metadata: scan.metadata, created_at: scan.createdAt, completed_at: scan.completedAt },
})

export const scanRecord = `id uuid, kind text, mode text, region text, status text,
    content_length bigint, content_type text, content_name text,
    signals text[], metadata jsonb, created_at timestamptz, completed_at timestamptz`

/** The same names without their types, for `insert into scans`. */
export const scanColumns = scanRecord.replaceAll(/(\w+) [\w[\]]+/g, '$1')

/** `bigint` arrives as text, because it can be larger than a number holds; a length of ours cannot. */
export type ScanRow = Pick<Scan, 'id' | 'kind' | 'status' | 'signals' | 'metadata'> & {
  content_length: string
  content_type: string
  content_name: string | null
  created_at: Date
  completed_at: Date | null
}

export const toScan = (row: ScanRow): Scan => ({
  id: row.id,
  kind: row.kind,
  status: row.status,
  contentLength: Number(row.content_length),
  contentType: row.content_type,
  contentName: row.content_name,
  signals: row.signals,
  metadata: row.metadata,
  createdAt: row.created_at,
  completedAt: row.completed_at,
})
