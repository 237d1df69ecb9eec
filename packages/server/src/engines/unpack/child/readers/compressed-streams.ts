import { inflateSync } from 'node:zlib'
import { findGitHeader } from '../../../../domain/content/archive-formats.ts'
import { isLzmaStream, isZlibHead } from '../../../../domain/content/container.ts'
import { findContainerFormat } from '../../../../domain/content/container-formats.ts'
import { headBytes } from '../../../../domain/content/content.ts'
import { decodeLzma, type LzmaEnd, lzmaHeadBytes } from '../../../../domain/content/lzma-decoder.ts'
import type { Doubt } from '../../../../domain/ports/engines.ts'
import { decompress } from '../inflate.ts'
import { hasSignature, type Members, type Range, type Reader, type Reading, type Source } from '../reader.ts'
import type { Damage } from './pdf-filters.ts'
import { decodeFlate } from './pdf-flate.ts'

/** Programs that write LZMA choose dictionaries of at most 64 MB by themselves. */
const maxWindowBytes = 2 ** 26

/** Reads `.lzma` files with unusual properties. 7-Zip reads those that are known by their head. */
export const lzmaReader: Reader = {
  name: 'lzma',
  recognizes(source) {
    const head = source.read(0, headBytes)
    return findContainerFormat(head) === undefined && isLzmaStream(head)
  },
  read: readLzma,
}

const doubtsByEnd: Record<LzmaEnd, Doubt[]> = {
  complete: [],
  damaged: ['UnsupportedContainer'],
  cut: ['UnsupportedContainer'],
  'too far': ['ScanLimitExceeded'],
}

async function readLzma(source: Source, members: Members): Promise<Reading> {
  const input = openInput(source, lzmaHeadBytes)
  let end: LzmaEnd = 'complete'
  function* decode() {
    const head = source.read(0, lzmaHeadBytes)
    end = yield* decodeLzma(head, { nextByte: input.nextByte, maxWindowBytes })
  }
  await members.give({ path: '[lzma]', pieces: decode() })
  return { accounted: [{ start: 0, end: Math.min(source.bytes, input.position()) }], doubts: doubtsByEnd[end] }
}

/** Reads the source byte by byte. */
function openInput(source: Source, start: number) {
  const pieces = source.pieces(start, source.bytes)
  let piece: Buffer = Buffer.alloc(0)
  let at = 0
  let pieceStart = start
  return {
    nextByte(): number {
      if (at === piece.length) {
        const next = pieces.next()
        if (next.done === true) return -1
        pieceStart += piece.length
        piece = next.value
        at = 0
      }
      return piece[at++] as number
    },
    position: () => pieceStart + at,
  }
}

const zstdSignature = 0xfd2f_b528
const maxFrames = 100_000
const maxBlocks = 1_000_000
/** Parallel writers note the length of the next frame in a skippable one. */
const maxNoteBytes = 16

const isSkippable = (magic: number) => magic >>> 4 === 0x0184_d2a5

/** Gives the bytes of skippable frames in Zstandard, which programs pass over. 7-Zip reads the other frames. */
export const zstdFramesReader: Reader = {
  name: 'Zstandard frames',
  recognizes(source) {
    const head = source.read(0, 4)
    if (head.length < 4) return false
    const magic = head.readUInt32LE(0)
    return magic === zstdSignature || isSkippable(magic)
  },
  async read(source, members) {
    const doubts: Doubt[] = []
    let at = 0
    for (let count = 0; at !== -1; count++) {
      if (count === maxFrames) {
        doubts.push('ScanLimitExceeded')
        break
      }
      const head = source.read(at, at + 8)
      if (head.length < 8) break
      const magic = head.readUInt32LE(0)
      const end = isSkippable(magic) ? at + 8 + head.readUInt32LE(4) : -1
      if (end > at + 8 + maxNoteBytes) {
        await members.give({ path: `[skippable frame ${count}]`, pieces: source.pieces(at + 8, end) })
      }
      if (end !== -1) at = end
      else at = magic === zstdSignature ? findFrameEnd(source, at) : -1
    }
    return { accounted: [], doubts, needsSevenZip: true }
  },
}

/** The position behind a frame, by the lengths of its blocks; -1 where they cannot be followed. */
function findFrameEnd(source: Source, start: number): number {
  const descriptor = source.read(start + 4, start + 5)[0] ?? 0
  const isSingle = (descriptor & 0x20) !== 0
  const sizeFlag = descriptor >> 6
  const sizeBytes = sizeFlag === 0 ? (isSingle ? 1 : 0) : 2 ** sizeFlag
  const dictionaryBytes = [0, 1, 2, 4][descriptor & 3] as number
  let at = start + 5 + (isSingle ? 0 : 1) + dictionaryBytes + sizeBytes
  for (let count = 0; count < maxBlocks; count++) {
    const head = source.read(at, at + 3)
    if (head.length < 3) return -1
    const value = head.readUIntLE(0, 3)
    const type = (value >> 1) & 3
    // A block of one repeated byte holds that byte alone.
    at += 3 + (type === 1 ? 1 : value >> 3)
    if ((value & 1) === 1) return at + ((descriptor & 4) === 0 ? 0 : 4)
  }
  return -1
}

/** A stream that breaks after fewer bytes was none: its two first bytes are no signature. */
const minZlibBytes = 1024
/** Enough for the header of an object of Git. */
const zlibHeadBytes = 64

/** Reads zlib streams, as pigz and git write them. */
export const zlibReader: Reader = {
  name: 'zlib',
  recognizes: (source) => isZlibHead(source.read(0, 2)),
  async read(source, members) {
    const { pieces, getUsedBytes } = decompress('zlib', source.pieces(0, source.bytes))
    let bytes = 0

    async function* count() {
      for await (const piece of pieces) {
        bytes += piece.length
        yield piece
      }
    }

    try {
      await members.give({ path: '', pieces: withoutGitHeader(count()) })
      return { accounted: [{ start: 0, end: getUsedBytes() }], doubts: [] }
    } catch {
      if (await giveDamaged(source, members)) return { accounted: [], doubts: ['UnsupportedContainer'] }
      return { accounted: [], doubts: bytes < minZlibBytes ? [] : ['UnsupportedContainer'] }
    }
  },
}

/** Leaves out the header of an object of Git, so that archives of repositories do not have twice as many members. */
async function* withoutGitHeader(pieces: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  let head: Buffer | undefined = Buffer.alloc(0)
  for await (const piece of pieces) {
    if (head === undefined) {
      yield piece
      continue
    }
    head = Buffer.concat([head, piece])
    if (head.length < zlibHeadBytes) continue
    yield head.subarray(findGitHeader(head))
    head = undefined
  }
  if (head !== undefined) yield head.subarray(findGitHeader(head))
}

/** Chance makes a stream of fewer bytes. */
const minDamagedBytes = 32
/** Longest damaged stream that is scanned whole. A longer one is scanned at its start and leaves a doubt anyway. */
const maxDamagedBytes = 2 ** 20

/**
 * Gives what a damaged stream holds in front of the damage, as pigz writes it. Returns whether nothing but its checksum
 * is wrong, so that it is certainly one.
 */
async function giveDamaged(source: Source, members: Members): Promise<boolean> {
  const damage: Damage = { isDamaged: false }
  const pieces: Buffer[] = []
  let bytes = 0
  for await (const piece of decodeFlate(() => source.pieces(0, source.bytes), damage)) {
    pieces.push(piece)
    bytes += piece.length
    if (bytes > maxDamagedBytes) break
  }
  if (bytes < minDamagedBytes) return false
  await members.give({ path: '', pieces })
  return damage.isBroken !== true
}

const zisofsSignature = Buffer.from('37e45396c9dbd607', 'hex')
const zisofsHeadBytes = 16
const pointerBytes = 4
/** Exponents of the block size that programs write. */
const blockBits = { least: 15, most: 17 }
const maxFileBytes = 2 ** 32

type ZisofsHead = { fileBytes: number; tableAt: number; blockBytes: number }

/** Reads zisofs: files of a disc that the file system decompresses when they are read. */
export const zisofsReader: Reader = {
  name: 'zisofs',
  recognizes: (source) => hasSignature(source, zisofsSignature),
  async read(source, members) {
    const head = readZisofsHead(source)
    const doubts = new Set<Doubt>()
    if (head === undefined) return { accounted: [], doubts: ['UnsupportedContainer'] }
    await members.give({ path: '', pieces: inflateBlocks(source, head, () => doubts.add('UnsupportedContainer')) })
    return { accounted: [{ start: 0, end: source.bytes }], doubts: [...doubts] }
  },
}

function readZisofsHead(source: Source): ZisofsHead | undefined {
  const head = source.read(0, zisofsHeadBytes)
  if (head.length < zisofsHeadBytes) return undefined
  const bits = head[13] as number
  if (bits < blockBits.least || bits > blockBits.most) return undefined
  return { fileBytes: head.readUInt32LE(8), tableAt: pointerBytes * (head[12] as number), blockBytes: 2 ** bits }
}

/** Yields the blocks up to the first one that is damaged. */
function* inflateBlocks(source: Source, { fileBytes, tableAt, blockBytes }: ZisofsHead, onDamage: () => void) {
  const count = Math.ceil(Math.min(fileBytes, maxFileBytes) / blockBytes)
  let dataEnd = tableAt + pointerBytes * (count + 1)
  for (let block = 0; block < count; block++) {
    const pointers = source.read(tableAt + pointerBytes * block, tableAt + pointerBytes * (block + 2))
    if (pointers.length < 2 * pointerBytes) return onDamage()
    const [start, end] = [pointers.readUInt32LE(0), pointers.readUInt32LE(pointerBytes)]
    // Data that no block has, or several have, is none that programs write.
    if (start !== dataEnd || end < start || end > source.bytes) return onDamage()
    const wantedBytes = Math.min(blockBytes, fileBytes - block * blockBytes)
    const bytes = inflateBlock(source.read(start, end), wantedBytes)
    if (bytes === undefined) return onDamage()
    yield bytes
    dataEnd = end
  }
  if (dataEnd !== source.bytes) onDamage()
}

/** A block without bytes holds zeros. */
function inflateBlock(bytes: Buffer, wantedBytes: number): Buffer | undefined {
  if (bytes.length === 0) return Buffer.alloc(wantedBytes)
  try {
    const inflated = inflateSync(bytes, { maxOutputLength: wantedBytes })
    return inflated.length === wantedBytes ? inflated : undefined
  } catch {
    return undefined
  }
}

const activeMimeSignature = Buffer.from('ActiveMime')
/** Where the head tells the length of its later part, and what stands before that. */
const laterBytesAt = 0x1e
const earlierBytes = 46
/** Where the stream begins in files of known programs. */
const usualStarts = [0x32, 0x22a]

/** Reads ActiveMime, in which Office keeps the macros of documents that are saved as web pages or as XML. */
export const activeMimeReader: Reader = {
  name: 'ActiveMime',
  recognizes: (source) => hasSignature(source, activeMimeSignature),
  async read(source, members) {
    const accounted: Range[] = []
    for (const start of listStreamStarts(source)) {
      const { pieces, getUsedBytes } = decompress('zlib', source.pieces(start, source.bytes))
      const isWhole = await members.give({ path: '', pieces }).then(
        () => true,
        () => false,
      )
      if (isWhole) accounted.push({ start, end: start + getUsedBytes() })
    }
    return { accounted, doubts: accounted.length > 0 ? [] : ['UnsupportedContainer'] }
  },
}

function listStreamStarts(source: Source): number[] {
  const laterBytes = source.read(laterBytesAt, laterBytesAt + 2)
  const told = laterBytes.length < 2 ? [] : [earlierBytes + laterBytes.readUInt16LE(0)]
  return [...new Set([...told, ...usualStarts])].filter((start) => isZlibHead(source.read(start, start + 2)))
}
