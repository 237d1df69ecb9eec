import { setImmediate } from 'node:timers/promises'
import { hasLongWords, newShortLineSearch } from './base64-text.ts'
import type { Content } from './content.ts'
import { newHexLineSearch } from './hex-digits.ts'

/** A piece of content is searched together with the end of the one before. */
const overlapBytes = 4096
/** Content with more control characters in its first bytes is no text. A few are damage. */
const firstBytes = 32
const maxControls = 2
const carriageReturn = 0x0d
const lineFeed = 0x0a

/**
 * Whether content is text in which a reader may find base64 or hexadecimal digits. No signature of ClamAV marks it,
 * because such text has no fixed bytes and patterns of its alphabet are slow.
 */
export function mayHoldEncoded(content: Content): boolean | Promise<boolean> {
  const { whole, mayHoldEncoded: known } = content
  if (known !== undefined) return known
  return whole === undefined ? searchPieces(content) : isText(whole) && hasEncoded(whole)
}

async function searchPieces(content: Content): Promise<boolean> {
  await content.load?.()
  if (!isText(content.head)) return false
  const search = newEncodedSearch()
  for await (const piece of content.read()) {
    if (search.take(piece)) return true
    // Pieces in memory come without a pause, while other requests wait.
    await setImmediate()
  }
  return false
}

/** Searches text that comes in pieces. */
export function newEncodedSearch() {
  let end: Buffer = Buffer.alloc(0)
  return {
    /** Whether this piece, or the end of the one before with its start, has encoded data. */
    take(piece: Uint8Array): boolean {
      const text = Buffer.concat([end, piece])
      end = Buffer.from(text.subarray(-overlapBytes))
      return hasEncoded(text)
    },
  }
}

/** Whether content begins like a text. */
export function isText(head: Uint8Array): boolean {
  let controls = 0
  for (const byte of head.subarray(0, firstBytes)) if (isControl(byte)) controls++
  return controls <= maxControls
}

/** Whether a byte is a control character that text does not have. */
export const isControl = (byte: number) => byte < 0x20 && (byte < 0x07 || byte > carriageReturn) && byte !== 0x1b

/** Whether a text has as many encoded characters as a file takes. Such text need not be encoded. */
export function hasEncoded(text: Buffer): boolean {
  if (hasLongWords(text)) return true
  const base64 = newShortLineSearch()
  const hex = newHexLineSearch()
  for (let start = 0; start < text.length; ) {
    const found = text.indexOf(lineFeed, start)
    const end = found === -1 ? text.length : found
    if (base64.take(text, start, end) || hex.take(text, start, end)) return true
    start = end + 1
  }
  return false
}
