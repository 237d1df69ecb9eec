import { isControl } from '../../../../domain/content/encoded-text.ts'
import type { Members, Range, Source } from '../reader.ts'

export type Line = {
  start: number
  /** The position behind the end of the line. */
  next: number
  /** The line without its end. */
  bytes: Buffer
}

const lineFeed = 0x0a
const carriageReturn = 0x0d
/** Longer lines are given in several pieces. Lines of text that decoders read are far shorter. */
const maxLineBytes = 65_536
const sampleBytes = 65_536

/** The byte that ends the lines from a position: a carriage return only where no line feed follows. */
export function findLineEnd(source: Source, at: number): number {
  const sample = source.read(at, at + sampleBytes)
  return !sample.includes(lineFeed) && sample.includes(carriageReturn) ? carriageReturn : lineFeed
}

/** Yields the lines from `start` up to `end`. */
export function* listLines(source: Source, start: number, end: number): Generator<Line> {
  const lineEnd = findLineEnd(source, start)
  let rest: Buffer = Buffer.alloc(0)
  let at = start
  for (const piece of source.pieces(start, end)) {
    const bytes = rest.length === 0 ? piece : Buffer.concat([rest, piece])
    let from = 0
    for (let found = bytes.indexOf(lineEnd, from); found !== -1; found = bytes.indexOf(lineEnd, from)) {
      const isReturned = lineEnd === lineFeed && found > from && bytes[found - 1] === carriageReturn
      yield { start: at + from, next: at + found + 1, bytes: bytes.subarray(from, isReturned ? found - 1 : found) }
      from = found + 1
    }
    if (bytes.length - from > maxLineBytes) {
      yield { start: at + from, next: at + bytes.length, bytes: bytes.subarray(from) }
      from = bytes.length
    }
    rest = bytes.subarray(from)
    at += from
  }
  if (rest.length > 0) yield { start: at, next: at + rest.length, bytes: rest }
}

const pieceBytes = 2 ** 20

/** The positions at which a global pattern matches the content, as latin1. No match is longer than `longest`. */
export function* listMatches(source: Source, pattern: RegExp, longest: number): Generator<number> {
  for (let at = 0; at < source.bytes; at += pieceBytes) {
    const from = Math.max(0, at - 1)
    const text = source.read(from, at + pieceBytes + longest).toString('latin1')
    for (const { index } of text.matchAll(pattern)) {
      const position = from + index
      if (position >= at && position < at + pieceBytes) yield position
    }
  }
}

/** Whether a line begins at the position. */
export function isLineStart(source: Source, at: number): boolean {
  if (at === 0) return true
  const before = source.read(at - 1, at)[0]
  return before === lineFeed || before === carriageReturn
}

/** The line at a position up to its end, of at most `maxBytes`, as latin1. */
export function readLine(source: Source, at: number, end: number, maxBytes = 1000): string {
  const text = source.read(at, Math.min(end, at + maxBytes)).toString('latin1')
  return /^[^\r\n]*/.exec(text)?.[0] ?? ''
}

/** Whether bytes hold control characters that text does not have. */
export function hasControls(bytes: Buffer): boolean {
  for (let at = 0; at < bytes.length; at++) if (isControl(bytes[at] as number)) return true
  return false
}

/** The number of control characters that text does not have. */
export function countControls(bytes: Buffer): number {
  let count = 0
  for (let at = 0; at < bytes.length; at++) if (isControl(bytes[at] as number)) count++
  return count
}

/** Text that carries bytes may have them soon: only its first bytes tell that it is text. */
const firstBytes = 32
const headBytes = 65_536
/** Control characters in the first bytes, and in the head, of a text that is damaged. Programs pass over them. */
const maxDamaged = { first: 2, head: 16 }

/** Whether content begins as text. */
export const beginsAsText = (source: Source): boolean => !hasControls(source.read(0, firstBytes))

/** Whether content begins as text, which may be damaged. */
export const beginsAsDamagedText = (source: Source): boolean =>
  countControls(source.read(0, firstBytes)) <= maxDamaged.first

/** Whether the head of content is text, which may be damaged. */
export const hasTextHead = (source: Source): boolean => countControls(source.read(0, headBytes)) <= maxDamaged.head

/** Whether content is PDF, PostScript or RTF, which write other data as digits and numbers: their readers know it. */
export const beginsAsDocument = (source: Source): boolean =>
  /^(?:%PDF-|%!|\{\\rt)/.test(source.read(0, firstBytes).toString('latin1'))

/** The end of the text that content begins with: the start of the line in which the first control character stands. */
export function findTextEnd(source: Source): number {
  let at = 0
  for (const piece of source.pieces(0, source.bytes)) {
    if (hasControls(piece)) return at + cutText(source.read(at, at + pieceBytes)).length
    at += piece.length
  }
  return at
}

/**
 * The range of the text, which was scanned with the content itself. Where the first line has control characters there is
 * none, and a container may stand anywhere in it: nothing is accounted for, so that the content is searched for one.
 */
export const accountForText = (textEnd: number): Range[] => (textEnd > 0 ? [{ start: 0, end: textEnd }] : [])

/** The position of the first control character at `from` or later, or the end of the content. */
export function findControl(source: Source, from: number): number {
  let at = from
  for (const piece of source.pieces(from, source.bytes)) {
    const found = piece.findIndex(isControl)
    if (found !== -1) return at + found
    at += piece.length
  }
  return at
}

/** The lines before the first one with a control character. */
export function cutText(bytes: Buffer): Buffer {
  if (!hasControls(bytes)) return bytes
  let low = 0
  let high = bytes.length
  while (low < high) {
    const middle = (low + high) >> 1
    if (hasControls(bytes.subarray(0, middle + 1))) high = middle
    else low = middle + 1
  }
  return bytes.subarray(0, bytes.subarray(0, low).lastIndexOf(0x0a) + 1)
}

/** Data that a text holds in an encoding. */
export type EncodedData = {
  /** The name of the member that it becomes. */
  path: string
  decode(): Generator<Buffer>
  /** Whether the data is none that is scanned, such as a key. Undefined where all data is scanned. */
  isLeftOut?(): boolean
}

/** Data that is a member of its own. Ordinary text has less; all that follows is one member. */
const maxMembers = 1000

/**
 * Gives the encoded data that a text holds, and returns whether there is any. `list` may be called twice; `further` is
 * the name of the member for what is given together.
 */
export async function giveEncoded(members: Members, further: string, list: () => Generator<EncodedData>) {
  let count = 0
  for (const { path, decode, isLeftOut } of list()) {
    if (++count > maxMembers) {
      await members.give({ path: further, pieces: decodeFurther(list()) })
      break
    }
    if (isLeftOut?.() !== true) await members.give({ path, pieces: decode() })
  }
  return count > 0
}

function* decodeFurther(list: Generator<EncodedData>): Generator<Buffer> {
  let count = 0
  for (const { decode } of list) {
    if (++count <= maxMembers) continue
    yield* decode()
    yield lineEnd
  }
}

const lineEnd = Buffer.from('\n')
