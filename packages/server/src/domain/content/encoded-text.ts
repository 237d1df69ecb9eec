import { setImmediate } from 'node:timers/promises'
import { hasAscii85 } from './ascii85.ts'
import {
  base64Kinds,
  continuesLikeBase32,
  continuesLikeBase64,
  findEnd,
  minLineChars,
  newShortLineSearch,
  sign,
} from './base64-text.ts'
import { binHexChar } from './binhex-text.ts'
import type { Content } from './content.ts'
import { isPage } from './document-formats.ts'
import { isHexDigit, isHexWord, minHexDigits, newHexLineSearch } from './hex-digits.ts'
import { hasNumberList } from './number-list.ts'
import { hasUnifiedDiff, isPatchLine, mayBeginPatch } from './patch-lines.ts'

/** Bytes that are searched at once. The search takes longest, over 10 ms, for nothing but short lines. */
const pieceBytes = 65_536
/** A piece of content is searched together with the end of the one before. */
const overlapBytes = 4096
/** Content with more control characters in its first bytes is no text. A few are damage. */
const firstBytes = 32
const maxControls = 2
const carriageReturn = 0x0d
const lineFeed = 0x0a

/**
 * Whether content is text in which a reader may find base64, base32, Ascii85, hexadecimal digits, a list of numbers or a
 * patch. No signature of ClamAV marks it, because encoded text has no fixed bytes and patterns of its alphabet are slow.
 */
export function mayHoldEncoded(content: Content): boolean | Promise<boolean> {
  const { whole, mayHoldEncoded: known } = content
  if (known !== undefined) return known
  if (whole === undefined || whole.length > pieceBytes) return searchPieces(content)
  return isText(whole) && (hasEncoded(whole) || (isPage(whole) && hasFirstLine(whole)))
}

async function searchPieces(content: Content): Promise<boolean> {
  await content.load?.()
  if (!isText(content.head)) return false
  const search = newEncodedSearch()
  for await (const piece of content.read()) {
    for (let at = 0; at < piece.length; at += pieceBytes) {
      if (search.take(piece.subarray(at, at + pieceBytes))) return true
      // Pieces in memory come without a pause, while other requests wait.
      await setImmediate()
    }
  }
  return false
}

/** Searches text that comes in pieces. */
export function newEncodedSearch() {
  let end: Buffer = Buffer.alloc(0)
  let isOfPage: boolean | undefined
  return {
    /** Whether this piece, or the end of the one before with its start, has encoded data. */
    take(piece: Uint8Array): boolean {
      const text = Buffer.concat([end, piece])
      end = Buffer.from(text.subarray(-overlapBytes))
      isOfPage ??= isPage(text)
      return hasEncoded(text) || (isOfPage && hasFirstLine(text))
    },
  }
}

/** The first line of uuencode or BinHex. */
const firstLine = new RegExp(`[\\r\\n](?:begin |[ \\t]{0,16}:${binHexChar}{32})`)

/**
 * Whether a line of a web page begins uuencode or BinHex. Signatures of ClamAV mark them in other text, but ClamAV scans
 * web pages without their line ends.
 */
const hasFirstLine = (text: Buffer) => firstLine.test(text.toString('latin1'))

/** Whether content begins like a text. */
export function isText(head: Uint8Array): boolean {
  let controls = 0
  for (const byte of head.subarray(0, firstBytes)) if (isControl(byte)) controls++
  return controls <= maxControls
}

/** Whether a byte is a control character that text does not have. */
export const isControl = (byte: number) => byte < 0x20 && (byte < 0x07 || byte > carriageReturn) && byte !== 0x1b

/**
 * Whether a text has as many characters of base64, base32 or hexadecimal digits as a file takes: in a row, in lines that
 * are near each other, or in short lines that follow each other; or Ascii85, a list of numbers or changes of a patch. Such
 * text need not be encoded.
 */
export function hasEncoded(text: Buffer): boolean {
  // A search in a string takes half of the time that it takes in a buffer.
  const string = text.toString('latin1')
  const isFirst = searchLines(text, 0) === found
  if (isFirst || hasUnifiedDiff(string) || hasAscii85(string)) return true
  return hasLongWords(text, string) || hasNumberList(string) || hasLines(text, string)
}

function hasLongWords(text: Buffer, string: string): boolean {
  let searchedTo = 0
  for (let start = 0; start + minLineChars <= string.length; ) {
    // A long word that begins here reaches the last of these bytes. Most words are shorter, so that few bytes are read.
    let last = start + minLineChars - 1
    while (last >= start && base64Kinds[string.charCodeAt(last)] !== 0) last--
    if (last >= start) {
      start = last + 1
      continue
    }
    const end = findEnd(text, start + minLineChars)
    const isHex = isHexWord(text, start, end)
    if ((isHex && end - start >= minHexDigits) || continuesLikeBase64(text, start, end)) return true
    if (!isHex && continuesLikeBase32(text, start, end)) return true
    if (isHex && start >= searchedTo) searchedTo = searchLines(text, start)
    if (searchedTo === found) return true
    start = end + 1
  }
  return false
}

/** Bytes as digits, in groups, behind the place that a dump notes. */
const hexGroups =
  /[ \t]*(?:[0-9A-Fa-f]{1,16}:[ \t]*)?(?:[0-9A-Fa-f]{2}){1,16}[ \t]+(?:[0-9A-Fa-f]{2}){1,16}(?=[ \t\r\n]|$)/y
/** A line of a dump by od, whose place has seven octal digits. */
const placedBytes = /[0-7]{7} [ \t]*[0-9A-Fa-f]{2}[ \t]/y
const placeDigits = 7
const blank = 0x20

/** Whether short lines that follow each other, or lines of digits, hold encoded data, or a line begins a patch. */
function hasLines(text: Buffer, string: string): boolean {
  let wasShort = false
  let searchedTo = 0
  if (isPatchLine(string, 0)) return true
  for (let at = string.indexOf('\n'); at !== -1; at = string.indexOf('\n', at + 1)) {
    if (mayBeginPatch(string, at + 1) && isPatchLine(string, at + 1)) return true
    if (at < searchedTo) continue
    const words = countWords(string, at + 1)
    const mayHold = (words === 1 && wasShort) || hasHexGroups(string, at + 1)
    if (words > 0) wasShort = words === 1
    if (!mayHold) continue
    const end = searchLines(text, at)
    if (end === found) return true
    searchedTo = end - 1
  }
  return false
}

/** Counts the words of a line up to two. Behind the first one, signs that join strings do not count. */
function countWords(string: string, start: number): number {
  let at = start
  while (at < string.length && base64Kinds[string.charCodeAt(at)] === 0 && string.charCodeAt(at) !== lineFeed) at++
  const first = at
  while (at < string.length && base64Kinds[string.charCodeAt(at)] !== 0) at++
  if (at === first) return 0
  for (; at < string.length && string.charCodeAt(at) !== lineFeed; at++) {
    const kind = base64Kinds[string.charCodeAt(at)]
    if (kind !== 0 && kind !== sign) return 2
  }
  return 1
}

/** Most lines are told by their first letter. */
function hasHexGroups(string: string, start: number): boolean {
  const first = string.charCodeAt(start)
  if (first > blank && isHexDigit[first] !== 1) return false
  hexGroups.lastIndex = start
  if (hexGroups.test(string)) return true
  if (string.charCodeAt(start + placeDigits) !== blank || first === blank) return false
  placedBytes.lastIndex = start
  return placedBytes.test(string)
}

const found = Number.POSITIVE_INFINITY

/** Searches lines around a place as long as they may hold encoded data together. Returns their end, or `found`. */
function searchLines(text: Buffer, at: number): number {
  const base64 = newShortLineSearch()
  const hex = newHexLineSearch()
  // The first word may stand in the line before.
  let start = at === 0 ? 0 : text.lastIndexOf(lineFeed, at - 1) + 1
  do {
    const lineEnd = text.indexOf(lineFeed, start)
    const end = lineEnd === -1 ? text.length : lineEnd
    if (base64.take(text, start, end) || hex.take(text, start, end)) return found
    start = end + 1
  } while (start < text.length && (start <= at + 1 || base64.isOpen() || hex.isOpen()))
  return start
}
