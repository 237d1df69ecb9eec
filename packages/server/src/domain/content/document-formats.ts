import { readMacBinary } from './apple-formats.ts'
import { binHexChar } from './binhex-text.ts'
import { findCmsKind } from './cms-head.ts'
import { headBytes } from './content.ts'
import { isMailHead } from './mail-head.ts'
import { mayBePackets } from './openpgp-chain.ts'

/**
 * Whether the head is that of a document or mail that may hold other files. A wrong yes costs time, a wrong no hides
 * content, so the checks are loose.
 */
export function isDocument(head: Buffer): boolean {
  return (
    isTextDocument(head) ||
    (head[0] === colon && binHexStart.test(head.toString('latin1', 0, firstBytes))) ||
    findCmsKind(head) !== undefined ||
    mayBePackets(head) ||
    isMailHead(head) ||
    readMacBinary(head) !== undefined ||
    isMixedPage(head) ||
    head.includes(pdfMark) ||
    hasPdfObject(head)
  )
}

const colon = 0x3a
/** A file in BinHex that no sentence announces. */
const binHexStart = new RegExp(`^:${binHexChar}{32}`)

/** The header of a PDF. Programs find it behind other bytes too. */
export const pdfMark = Buffer.from('%PDF-')

const objectMark = Buffer.from(' obj')
const pdfObject = /(?:^|[\r\n])[ \t]*\d{1,10} \d{1,5} obj\b/

/** Whether an object of a PDF begins in a line of the head: many programs read a PDF whose header is damaged. */
export const hasPdfObject = (head: Buffer): boolean =>
  head.includes(objectMark) && pdfObject.test(head.toString('latin1'))

/** ClamAV tells web pages by the tags in their first kilobyte. */
const pageBytes = 1024
const firstBytes = 64

/**
 * Whether the content may be a web page with bytes behind it that no text has. ClamAV scans web pages as text alone, so
 * it does not search them for containers. The bytes behind the head of a long page are unknown.
 */
function isMixedPage(head: Buffer): boolean {
  const at = findTag(head)
  // Text has no control characters but those of lines and tabs.
  if (at === -1 || head.subarray(0, Math.min(at, firstBytes)).some((byte) => byte < 9)) return false
  return head.length >= headBytes || head.includes(0)
}

const tagStart = 0x3c

/** The position of the first tag that ClamAV looks at, or -1. */
function findTag(head: Buffer): number {
  const start = head.subarray(0, pageBytes)
  return start.includes(tagStart) ? start.toString('latin1').search(/<[!a-z]/i) : -1
}

/** Whether ClamAV may take text with this head for a web page. */
export const isPage = (head: Buffer): boolean => findTag(head) !== -1

/** Compares only the starts that have the first byte of the content, so that most content costs one look-up. */
function isTextDocument(head: Buffer): boolean {
  const starts = startsByFirstByte[head[0] ?? 0]
  return (
    starts?.some((start) => head.compare(start, 0, start.length, 0, Math.min(start.length, head.length)) === 0) ?? false
  )
}

/** The starts of RTF, uuencode, yEnc and armour. */
const startsByFirstByte: Record<number, Buffer[]> = {}
for (const text of ['{\\rt', 'begin ', 'begin-', '=ybegin ', '-----BEGIN ']) {
  const start = Buffer.from(text)
  const first = start[0] as number
  startsByFirstByte[first] = [...(startsByFirstByte[first] ?? []), start]
}
