import { setImmediate } from 'node:timers/promises'
import {
  base64Kinds,
  continuesLikeBase32,
  continuesLikeBase64,
  findEnd,
  minLineChars,
  newShortLineSearch,
  setKind,
  sign,
} from './base64-text.ts'
import type { Content } from './content.ts'
import { hasNumberList, isHexDigit, isHexWord, minHexDigits, newHexLineSearch } from './digits.ts'
import { binHexChar, isPage } from './document-formats.ts'

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

/** The lines with which a hunk begins in a unified, a context and a normal diff, and binary data in one of Git. */
const unifiedHunk = /@@ -\d{1,9}(?:,\d{1,9})? \+\d/y
const contextHunk = /\*\*\* \d{1,9}(?:,\d{1,9})? \*\*\*\*/y
const normalHunk = /\d{1,9}(?:,\d{1,9})?[acd]\d{1,9}(?:,\d{1,9})?\r?\n[<>] /y
export const binaryPatch = 'GIT binary patch'

const star = 0x2a
const less = 0x3c
const greater = 0x3e
const letterG = 0x47

/** Whether a change of a unified diff begins in the text, at any indent. The search for a rare sign takes little time. */
function hasUnifiedDiff(text: string): boolean {
  for (let at = text.indexOf('@@ -'); at !== -1; at = text.indexOf('@@ -', at + 1))
    if (matchesAt(unifiedHunk, text, at)) return true
  return false
}

/** Whether a line begins with a sign at which `isPatchLine` looks. This tells most lines. */
function mayBeginPatch(text: string, start: number): boolean {
  const first = text.charCodeAt(start)
  return first === star || first === letterG || first === less || first === greater
}

/** Whether a change of another diff, or binary data of Git, begins in this line. */
function isPatchLine(text: string, start: number): boolean {
  const first = text.charCodeAt(start)
  if (first === star) return matchesAt(contextHunk, text, start)
  if (first === letterG) return text.startsWith(binaryPatch, start)
  if ((first !== less && first !== greater) || text.charCodeAt(start + 1) !== blank || start < 2) return false
  // The first line that is added or removed stands behind the one that tells its number.
  return matchesAt(normalHunk, text, text.lastIndexOf('\n', start - 2) + 1) && normalHunk.lastIndex === start + 2
}

function matchesAt(pattern: RegExp, text: string, at: number): boolean {
  pattern.lastIndex = at
  return pattern.test(text)
}

/** Fewer characters hold no file. */
export const minAscii85Chars = 80
export const ascii85End = '~>'

const character = 1
const whitespace = 2

/** The kind of each byte, 0 for those that Ascii85 does not have. `z` and `y` stand for four bytes each. */
export const ascii85Kinds = new Uint8Array(256)
for (let byte = 0x21; byte <= 0x75; byte++) ascii85Kinds[byte] = character
setKind(ascii85Kinds, 'yz', character)
setKind(ascii85Kinds, ' \t\r\n\v\f', whitespace)

/** Whether a text has as many characters of Ascii85 as a file takes in front of the mark that ends it. */
function hasAscii85(text: string): boolean {
  for (let end = text.indexOf(ascii85End); end !== -1; end = text.indexOf(ascii85End, end + 1)) {
    let chars = 0
    for (let at = end - 1; at >= 0 && chars < minAscii85Chars; at--) {
      const kind = ascii85Kinds[text.charCodeAt(at)]
      if (kind === 0) break
      if (kind === character) chars++
    }
    if (chars >= minAscii85Chars) return true
  }
  return false
}
