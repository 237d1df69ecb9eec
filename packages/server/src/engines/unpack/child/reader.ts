import type { Doubt } from '../../../domain/ports/engines.ts'

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
  /** 7-Zip's name of the format, for a reader that recognises content of which the head tells nothing. */
  unpackAs?: string
}

/** Whether the bytes of a signature stand at a position. */
export const hasSignature = (source: Source, signature: Buffer, at = 0): boolean =>
  source.read(at, at + signature.length).equals(signature)

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

const zeros = Buffer.alloc(2 ** 20)

/** Whether a range holds nothing but zeros, which are padding. */
export function isPadding(source: Source, { start, end }: Range): boolean {
  for (const piece of source.pieces(start, end)) {
    if (!piece.equals(zeros.subarray(0, piece.length))) return false
  }
  return true
}

/** Yields the bytes of several ranges. */
export function* listPieces(source: Source, ranges: Range[]): Generator<Buffer> {
  for (const { start, end } of ranges) yield* source.pieces(start, end)
}

/** Returns the first bytes of pieces, at most `maxBytes`. */
export function readFirst(pieces: Iterable<Buffer>, maxBytes: number): Buffer {
  const parts: Buffer[] = []
  let bytes = 0
  for (const piece of pieces) {
    parts.push(piece.subarray(0, maxBytes))
    bytes += piece.length
    if (bytes >= maxBytes) break
  }
  return Buffer.concat(parts).subarray(0, maxBytes)
}

/** The bytes of the content that a job is about. Readers look at them where they want to, in any order. */
export type Source = {
  readonly bytes: number
  /** The bytes from `start` up to `end`, fewer where the content ends. Meant for structures, not for whole members. */
  read(start: number, end: number): Buffer
  /** Yields the bytes from `start` up to `end` in pieces of at most 1 MB. */
  pieces(start: number, end: number): Generator<Buffer>
  /** The position of the first occurrence of the pattern that begins at `from` or later and before `until`, or -1. */
  find(pattern: Buffer, from: number, until?: number): number
}

const blockBytes = 2 ** 20
const maxBlocks = 16

/**
 * Content whose bytes are fetched from the service where a reader looks: never more than 16 MB of it are in this process. Most
 * content is smaller than one block and arrives in one piece.
 */
export function openSource(bytes: number, fetch: (start: number, length: number) => Buffer): Source {
  /** Fetched blocks in order of use, the longest unused first. */
  const blocks = new Map<number, Buffer>()

  function getBlock(index: number): Buffer {
    let block = blocks.get(index)
    if (block === undefined) {
      block = fetch(index * blockBytes, Math.min(blockBytes, bytes - index * blockBytes))
      const [oldest] = blocks.keys()
      if (blocks.size >= maxBlocks && oldest !== undefined) blocks.delete(oldest)
    } else {
      blocks.delete(index)
    }
    blocks.set(index, block)
    return block
  }

  function* pieces(start: number, end: number): Generator<Buffer> {
    const last = Math.min(end, bytes)
    for (let at = Math.max(0, start); at < last; ) {
      const offset = at % blockBytes
      const piece = getBlock(Math.floor(at / blockBytes)).subarray(offset, offset + last - at)
      at += piece.length
      yield piece
    }
  }

  return {
    bytes,
    pieces,
    read(start, end) {
      const [first = empty, ...rest] = pieces(start, end)
      return rest.length === 0 ? first : Buffer.concat([first, ...rest])
    },
    find(pattern, from, until = bytes) {
      const last = Math.min(until, bytes)
      for (let at = Math.max(0, from); at < last; ) {
        const blockEnd = (Math.floor(at / blockBytes) + 1) * blockBytes
        // Reading across the end of a block copies, so that the few bytes around it are searched on their own.
        const seam = Math.max(at, blockEnd - pattern.length + 1)
        for (const [start, end] of [
          [at, Math.min(blockEnd, last + pattern.length - 1)],
          [seam, blockEnd + pattern.length - 1],
        ] as const) {
          const found = this.read(start, end).indexOf(pattern)
          if (found !== -1) return start + found < last ? start + found : -1
        }
        at = blockEnd
      }
      return -1
    },
  }
}

/** A range of a source as a source of its own. */
export function cutSource(source: Source, start: number, end: number = source.bytes): Source {
  const last = Math.min(end, source.bytes)
  return {
    bytes: Math.max(0, last - start),
    read: (from, until) => source.read(start + Math.max(0, from), Math.min(last, start + until)),
    pieces: (from, until) => source.pieces(start + Math.max(0, from), Math.min(last, start + until)),
    find(pattern, from, until = last - start) {
      const found = source.find(pattern, start + Math.max(0, from), Math.min(last, start + until))
      return found === -1 || found + pattern.length > last ? -1 : found - start
    },
  }
}

/** Content that is in memory already. */
export const openBufferSource = (content: Buffer): Source =>
  openSource(content.length, (start, length) => content.subarray(start, start + length))

const empty = Buffer.alloc(0)
