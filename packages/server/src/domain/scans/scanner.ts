import type { Content } from '../content/content.ts'
import type { Describer } from '../content/describe.ts'
import { findImageFormat } from '../content/image-format.ts'
import type { Assess, ScanOptions } from './assess.ts'
import type { Download, Wanted } from './download.ts'
import type { Scan } from './scan.ts'

/** How a scan ends: all of it but its times and what it was asked with. */
export type FinalResult = Pick<Scan, 'status' | 'signals' | 'metadata' | 'contentLength' | 'contentType'>

/** Until a URL was fetched. */
export const unknownContent = { contentLength: 0, contentType: 'application/octet-stream', metadata: null }

/** One way to an end for content that is here and content that has to be fetched, with or without somebody waiting. */
export function makeScanner({
  describe,
  assess,
  download,
}: {
  describe: Describer
  assess: Assess
  download: Download
}) {
  return { scanContent, scanUrl }

  /** Throws when the engines do not answer. */
  async function scanContent(content: Content, asked: ScanOptions): Promise<FinalResult> {
    const { contentType, hashes } = await describe(content)
    const found = { contentLength: content.bytes, contentType }
    if (asked.kind === 'nsfw_image' && findImageFormat(content.head) === undefined) {
      return { ...found, ...toError('UnsupportedImage'), metadata: hashes }
    }
    const { status, signals, metadata } = await assess(content, asked)
    return { ...found, status, signals, metadata: { ...hashes, ...metadata } }
  }

  /** What fails on the other side is an end like any other; throws only for what fails on ours. */
  async function scanUrl(url: string, asked: ScanOptions & Wanted): Promise<FinalResult> {
    const fetched = await download(url, asked)
    if ('failure' in fetched) {
      return { ...unknownContent, ...toError(fetched.failure), metadata: { reason: fetched.reason } }
    }
    return scanContent(fetched.content, asked).finally(fetched.content.release)
  }
}

export type Scanner = ReturnType<typeof makeScanner>

const toError = (reason: string) => ({ status: 'error' as const, signals: [`Error:${reason}`] })
