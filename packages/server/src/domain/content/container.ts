import { type Doubt, maxUnpackedBytes } from '../ports/engines.ts'
import { isEncryptedInside, readZipDirectory } from './container-directories.ts'
import { findContainerFormat, listContainerFormats } from './container-formats.ts'
import type { Content } from './content.ts'
import { isDocument } from './document-formats.ts'
import { isEncrypted } from './encrypted-formats.ts'
import { isLzmaStream } from './lzma-head.ts'
import { countSkippedBytes } from './skipped-formats.ts'
import { findWideText } from './wide-text.ts'
import { isZlibHead } from './zlib-head.ts'

/**
 * Whether content with this head may hold other content, content that nobody can read without a password, or bytes that
 * ClamAV does not scan.
 */
export const canHoldContent = (head: Buffer): boolean =>
  findContainerFormat(head) !== undefined ||
  isEncrypted(head) ||
  isDocument(head) ||
  countSkippedBytes(head) !== undefined ||
  isZlibHead(head) ||
  isLzmaStream(head) ||
  findWideText(head) !== undefined

/** As `canHoldContent`. The answer is kept with the content, because every scan asks three times. */
export function mayHoldContent(content: Content): boolean {
  content.mayHold ??= canHoldContent(content.head)
  return content.mayHold
}

/**
 * Finds the doubts about content that are known before anything is unpacked. Returns undefined, without a promise, for
 * content that cannot hold other content as far as its head tells.
 */
export function findKnownDoubts(content: Content): Promise<Doubt[]> | undefined {
  if (!mayHoldContent(content)) return undefined
  return listKnownDoubts(content)
}

async function listKnownDoubts(content: Content): Promise<Doubt[]> {
  if (isEncrypted(content.head)) return ['EncryptedContent']
  const [format, ...others] = listContainerFormats(content.head)
  if (format === undefined) return []
  const doubts: Doubt[] = format.unpackAs === 'zip' ? await listZipDoubts(content) : []
  if (format.isEncrypted || (await isEncryptedInside(content, format.name))) doubts.push('EncryptedContent')
  else if ([format, ...others].some((each) => each.unpackAs === undefined && !each.hasReader))
    doubts.push('UnsupportedContainer')
  return doubts
}

async function listZipDoubts(content: Content): Promise<Doubt[]> {
  const zip = await readZipDirectory(content)
  const doubts: Doubt[] = []
  if (zip.encrypted) doubts.push('EncryptedContent')
  if (zip.tooLarge || zip.largestBytes > maxUnpackedBytes || zip.totalBytes > maxUnpackedBytes)
    doubts.push('ScanLimitExceeded')
  return doubts
}
