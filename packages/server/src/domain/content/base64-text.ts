import { setImmediate } from 'node:timers/promises'
import type { Content } from './content.ts'

/** Fewer characters hold no file. */
export const minBase64Chars = 64
/** Lines of base64 have at least as many characters, or all have the same number. */
export const minLineChars = 32
/** Line ends, quotes, and words with which lines of base64 begin or end, such as `echo` and `>> file`. */
const maxGapBytes = 300
/** A line of fewer than `minLineChars`, with an indent and quotes. */
const maxShortLineBytes = 120
/** Fewer signs join strings. */
const minWordChars = 4
/** A piece of content is searched together with the end of the one before. */
const overlapBytes = 4096
/** Readers of text take no content that has a control character in these bytes. */
const firstBytes = 32

const digit = 1
const upper = 2
const lower = 4
/** The signs of both alphabets, and the backslash that some languages write in front of a slash or for a line end. */
export const sign = 8

/** The kind of each byte, 0 for those that base64 does not have. */
export const base64Kinds = new Uint8Array(256)
setKind(base64Kinds, '0123456789', digit)
setKind(base64Kinds, 'ABCDEFGHIJKLMNOPQRSTUVWXYZ', upper)
setKind(base64Kinds, 'abcdefghijklmnopqrstuvwxyz', lower)
setKind(base64Kinds, '+/-_\\', sign)

export function setKind(kinds: Uint8Array, chars: string, kind: number) {
  for (const char of chars) kinds[char.charCodeAt(0)] = kind
}

const lineFeed = 0x0a
const carriageReturn = 0x0d

/**
 * Whether content is text in which a reader may find base64. ClamAV has no signature for that: base64 of any content
 * has no fixed bytes, and a pattern for its alphabet would make the scan of a text a half slower.
 */
export function mayHoldBase64(content: Content): boolean | Promise<boolean> {
  const { whole, mayHoldBase64: known } = content
  if (known !== undefined) return known
  return whole === undefined ? searchPieces(content) : isText(whole) && hasBase64(whole)
}

async function searchPieces(content: Content): Promise<boolean> {
  await content.load?.()
  if (!isText(content.head)) return false
  const search = newBase64Search()
  for await (const piece of content.read()) {
    if (search.take(piece)) return true
    // Pieces in memory come without a pause, while other requests wait.
    await setImmediate()
  }
  return false
}

/** Searches text that comes in pieces. */
export function newBase64Search() {
  let end: Buffer = Buffer.alloc(0)
  return {
    /** Whether this piece, or the end of the one before with its start, has base64. */
    take(piece: Uint8Array): boolean {
      const text = Buffer.concat([end, piece])
      end = Buffer.from(text.subarray(-overlapBytes))
      return hasBase64(text)
    },
  }
}

/** Whether content begins like a text. */
export function isText(head: Uint8Array): boolean {
  for (const byte of head.subarray(0, firstBytes))
    if (byte < 0x20 && (byte < 0x07 || byte > carriageReturn) && byte !== 0x1b) return false
  return true
}

const isLetter = (byte: number | undefined) => byte !== undefined && base64Kinds[byte] !== 0

/**
 * Whether a text has as many characters of base64 as a file takes: in a row, in lines that are near each other, or in
 * short lines of the same length. Such text need not be base64.
 */
export function hasBase64(text: Buffer): boolean {
  for (let start = 0; start + minLineChars <= text.length; ) {
    // A line that begins here reaches the last of these bytes. Most words are shorter, so that few bytes are read.
    let last = start + minLineChars - 1
    while (last >= start && base64Kinds[text[last] as number] !== 0) last--
    if (last >= start) {
      start = last + 1
      continue
    }
    const end = findEnd(text, start + minLineChars)
    if (continuesLikeBase64(text, start, end)) return true
    start = end + 1
  }
  return hasShortLines(text)
}

function findEnd(text: Buffer, from: number): number {
  let end = from
  while (isLetter(text[end])) end++
  return end
}

/** The kinds of the bytes of a range, as bits. */
export function findKinds(text: Buffer, start = 0, end = text.length): number {
  let found = 0
  for (let at = start; at < end; at++) found |= base64Kinds[text[at] as number] as number
  return found
}

/** Hexadecimal digits, numbers and words do not have all kinds of characters. */
export const hasBase64Kinds = (found: number) =>
  (found & upper) !== 0 && (found & lower) !== 0 && (found & (digit | sign)) !== 0

/** Whether a line of base64 is long enough, or has others near it. One shorter line may be the last. */
function continuesLikeBase64(text: Buffer, start: number, end: number): boolean {
  if (isHash(text, start, end)) return false
  let chars = end - start
  let found = findKinds(text, start, end)
  if (chars >= minBase64Chars && hasBase64Kinds(found)) return true
  const stop = Math.min(text.length, end + maxGapBytes)
  for (let at = end; at < stop; at++) {
    if (!isLetter(text[at])) continue
    const next = findEnd(text, at)
    const isHashNext = isHash(text, at, next)
    if (!isHashNext) {
      found |= findKinds(text, at, next)
      if (chars + next - at >= minBase64Chars && hasBase64Kinds(found)) return true
      if (next - at >= minLineChars) chars += next - at
    }
    at = next
  }
  return false
}

/** `sha512-` and its 88 characters. */
export const longestHash = 99

/** The hash of a file, as lists of packages have it for each package. */
export const isHash = (text: Buffer, start: number, end: number) =>
  end - start <= longestHash && /^sha\d{3}-/.test(text.toString('latin1', start, start + 7))

/** Whether lines that follow each other hold one word each, all of them of one length but for a shorter last one. */
function hasShortLines(text: Buffer): boolean {
  let width = 0
  let chars = 0
  let found = 0
  for (let start = 0; start < text.length; ) {
    const lineEnd = text.indexOf(lineFeed, start)
    const end = lineEnd === -1 ? text.length : lineEnd
    const word = findOnlyWord(text, start, end)
    start = end + 1
    const length = word === undefined ? 0 : word.end - word.start
    if (word === undefined) width = 0
    if (word === undefined || length === 0) continue
    if (length > width) {
      width = length
      chars = 0
      found = 0
    }
    chars += length
    found |= findKinds(text, word.start, word.end)
    if (chars >= minBase64Chars && hasBase64Kinds(found)) return true
    if (length < width) {
      width = length
      chars = length
    }
  }
  return false
}

/**
 * The characters of base64 in a line that has them in one place only, besides signs that may join strings; an empty
 * place in a line that has none. Long lines are left to the search for long words.
 */
export function findOnlyWord(text: Buffer, lineStart: number, lineEnd: number) {
  if (lineEnd - lineStart > maxShortLineBytes) return undefined
  let word = { start: lineStart, end: lineStart }
  let signs = word
  for (let start = lineStart; start < lineEnd; start++) {
    if (!isLetter(text[start])) continue
    const end = findEnd(text, start)
    const isJoint = end - start < minWordChars && findKinds(text, start, end) === sign
    if (!isJoint && word.end > word.start) return undefined
    if (isJoint) signs = { start, end }
    else word = { start, end }
    start = end
  }
  return word.end > word.start ? word : signs
}
