import type { Doubt } from '../../../domain/ports/engines.ts'
import type { Source } from './source.ts'

/** Bytes of the content from `start` up to `end`. */
export type Range = { start: number; end: number }

type Pieces = Iterable<Uint8Array> | AsyncIterable<Uint8Array>

/** Takes the members of the content. Each is scanned as content of its own, by the same rules. */
export type Members = {
  /**
   * Gives one member. `isSeen` says that ClamAV certainly makes the same reading, so that it has scanned these bytes:
   * such a member is left out unless another engine needs it or it may itself hold content. Bytes that were given
   * before `pieces` throws are scanned, and the error is passed on: the reader turns it into a doubt.
   */
  give(member: { path: string; pieces: Pieces; isSeen?: boolean }): Promise<void>
}

export type Reading = {
  /**
   * The ranges that the structure of the format accounts for, members included. All other bytes are given as content of
   * their own, unless they are zero.
   */
  accounted: Range[]
  /** Ranges of these in which nothing but text is expected: they are searched for containers. */
  searched?: Range[]
  /** Reasons why some program may extract content that was not given. */
  doubts: Doubt[]
  /** The reader leaves some members to 7-Zip, which reads the whole content after it. */
  needsSevenZip?: boolean
  /** The bytes of the members that 7-Zip gave. Readers give members to `Members`. */
  givenBytes?: number
}

/** One way to read content. Several readers may recognise the same bytes; each of them reads. */
export type Reader = {
  /** The name in the table of readings of docs/verdicts.md. */
  name: string
  /** Whether some program would read the content in this way. Looks at few bytes. */
  recognizes(source: Source): boolean
  /** Never throws for bad bytes: those are a doubt. */
  read(source: Source, members: Members): Promise<Reading>
}

/** The ranges of `bytes` bytes that are in none of the given ones, in order. */
export function findGaps(accounted: Range[], bytes: number): Range[] {
  const gaps: Range[] = []
  let end = 0
  for (const range of accounted.toSorted((a, b) => a.start - b.start)) {
    if (range.start > end) gaps.push({ start: end, end: Math.min(range.start, bytes) })
    end = Math.max(end, range.end)
    if (end >= bytes) return gaps
  }
  gaps.push({ start: end, end: bytes })
  return gaps
}

/** The position of the first byte from `from` on that is not zero; the end of the content when there is none. */
export function findNonZero(source: Source, from: number): number {
  let at = from
  for (const piece of source.pieces(from, source.bytes)) {
    const offset = piece.findIndex((byte) => byte !== 0)
    if (offset !== -1) return at + offset
    at += piece.length
  }
  return source.bytes
}

/** Whether a range of text has bytes that no text has. */
export function isMixed(source: Source, { start, end }: Range): boolean {
  for (const piece of source.pieces(start, end)) if (piece.some((byte) => byte < 9)) return true
  return false
}

/** Whether a range holds nothing but zeros, which are padding. */
export function isPadding(source: Source, { start, end }: Range): boolean {
  for (const piece of source.pieces(start, end)) {
    if (!piece.equals(zeros.subarray(0, piece.length))) return false
  }
  return true
}

const zeros = Buffer.alloc(2 ** 20)
