import type { ScanKind } from '@assay/contract'
import type { Content } from '../content/content.ts'
import type { ImageScan } from './image-scan.ts'
import type { Assessment, MalwareScan } from './malware-scan.ts'

/** What a verdict depends on beside the content. */
export type ScanOptions = {
  kind: ScanKind
  contentName: string | null
  flagsSexy: boolean
  /** By a test key: names decide, no engine. */
  isTest: boolean
  /** Aborted when the caller has left. Made only where somebody asks for it: most scans are over sooner. */
  abortWhenClientLeaves?(): AbortSignal
}

/** Whatever the kind, and whether somebody waits for it or not: one way to a verdict. Throws when there is none. */
export type Assess = (content: Content, asked: ScanOptions) => Promise<Assessment>

export const makeAssess =
  ({ malware, images }: { malware: MalwareScan; images: ImageScan }): Assess =>
  (content, asked) =>
    asked.kind === 'malware' ? malware.assess(content, asked.contentName) : images.assess(content, asked)
