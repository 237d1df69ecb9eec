import type { ScanKind, ScanMode, ScanResultType } from '@assay/contract'

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
