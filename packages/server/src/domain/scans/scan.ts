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

/** What is known of a scan when it is admitted. A URL's content is not: length 0, `application/octet-stream`. */
export type NewScan = Pick<Scan, 'id' | 'kind' | 'contentLength' | 'contentType' | 'contentName' | 'metadata'> & {
  mode: ScanMode
  region: string
}
