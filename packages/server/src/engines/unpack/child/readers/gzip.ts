import { crc32 } from 'node:zlib'
import { findContainerFormat } from '../../../../domain/content/container-formats.ts'
import { headBytes } from '../../../../domain/content/content.ts'
import type { Doubt } from '../../../../domain/ports/engines.ts'
import { decompress } from '../inflate.ts'
import { findNonZero, type Members, type Range, type Reader, type Reading, type Source } from '../reader.ts'

const headerBytes = 10
/** The first two bytes of a part: of all versions, and of gzip 0.5, whose files gzip still reads. */
const marks = [0x1f8b, 0x1f9e]
const deflateMethod = 8
/** Streams that gzip or zstd decode as well, and append to what stands before them. */
const otherStreams = new Set(['compress', 'pack', 'compress-lzh', 'xz', 'lzma', 'zstd', 'old-zstd', 'lz4'])
const maxParts = 100_000
/** Files with more parts come from writers that cut one file into blocks, and no program extracts such a block alone. */
const maxPartsAlone = 16
const maxTextBytes = 65_536
/** Longer fields of a header are searched as content of their own. */
const maxPlainFieldBytes = 512

/**
 * Reads gzip: the first part alone, as some programs do, each of a few others, and all of them as one file, as gzip
 * does, which stops where zeros follow a part.
 */
export const gzipReader: Reader = {
  name: 'gzip',
  recognizes: (source) => hasMark(source.read(0, headerBytes)),
  read: readGzip,
}

const hasMark = (head: Buffer) => head.length > 2 && marks.includes(head.readUInt16BE(0)) && head[2] === deflateMethod

/** Whether one of the two bytes is another one. The Unarchiver does not compare them behind the first part. */
const hasDamagedMark = ([first, second, method, flags = 0xff]: Buffer) =>
  (first === 0x1f) !== (second === 0x8b) && method === deflateMethod && flags < 0x20

type Part = { dataAt: number; name: string; fields: Range[]; isPlain: boolean }

async function readGzip(source: Source, members: Members): Promise<Reading> {
  const accounted: Range[] = []
  const doubts = new Set<Doubt>()
  const parts: Part[] = []
  let hasZeros = false
  let at = 0

  /** Gives the parts so far as one file. */
  async function giveJoined() {
    const [first, second] = parts
    if (first === undefined || second === undefined) return
    const pieces = joinParts(source, parts)
    await members.give({ path: first.name, pieces }).catch(() => doubts.add('UnsupportedContainer'))
  }

  for (let part = readPart(source, at); part !== undefined; part = readPart(source, at)) {
    if (parts.push(part) > maxParts) return { accounted, doubts: [...doubts, 'ScanLimitExceeded'] }
    accounted.push(...part.fields)
    const isAlone = parts.length <= maxPartsAlone
    const { usedBytes, isWhole } = await givePart(source, members, part, { isAlone, isSeen: at === 0 && part.isPlain })
    if (!isWhole) doubts.add('UnsupportedContainer')
    const end = isWhole ? part.dataAt + usedBytes + trailerBytes : source.bytes
    accounted.push({ start: part.dataAt, end })
    at = findNonZero(source, end)
    // gzip ignores what follows zeros, and other programs read on.
    if (at > end && !hasZeros && readPart(source, at) !== undefined) {
      hasZeros = true
      await giveJoined()
    }
  }
  await giveJoined()
  const following = findContainerFormat(source.read(at, at + headBytes))
  if (otherStreams.has(following?.name ?? '')) doubts.add('UnsupportedContainer')
  if (parts.length > 0 && hasDamagedMark(source.read(at, at + headerBytes))) doubts.add('UnsupportedContainer')
  // A damaged header at the start.
  if (parts.length === 0) doubts.add('UnsupportedContainer')
  return { accounted, doubts: [...doubts] }
}

const trailerBytes = 8

/** Decodes one part and checks its trailer; gives it, or only finds its end. */
async function givePart(
  source: Source,
  members: Members,
  { dataAt, name }: Part,
  { isAlone, isSeen }: { isAlone: boolean; isSeen: boolean },
): Promise<{ usedBytes: number; isWhole: boolean }> {
  const { pieces, getUsedBytes } = decompress('deflate', source.pieces(dataAt, source.bytes))
  let crc = 0
  let bytes = 0

  async function* check() {
    for await (const piece of pieces) {
      crc = crc32(piece, crc)
      bytes += piece.length
      yield piece
    }
  }

  const checked = check()
  try {
    if (isAlone) await members.give({ path: name, pieces: checked, isSeen })
    // A part that ClamAV has scanned is not taken to its end, which must be known.
    for await (const _ of checked);
  } catch {
    return { usedBytes: 0, isWhole: false }
  }
  const usedBytes = getUsedBytes()
  const trailer = source.read(dataAt + usedBytes, dataAt + usedBytes + trailerBytes)
  const isWhole =
    trailer.length === trailerBytes && trailer.readUInt32LE(0) === crc && trailer.readUInt32LE(4) === bytes % 2 ** 32
  return { usedBytes, isWhole }
}

async function* joinParts(source: Source, parts: Part[]): AsyncGenerator<Uint8Array> {
  for (const { dataAt } of parts) yield* decompress('deflate', source.pieces(dataAt, source.bytes)).pieces
}

/** Reads the header of a part; undefined when there is none. */
function readPart(source: Source, start: number): Part | undefined {
  const head = source.read(start, start + headerBytes)
  if (head.length < headerBytes || !hasMark(head)) return undefined
  const flags = head[3] ?? 0
  const fields: Range[] = [{ start, end: start + headerBytes }]
  let at = start + headerBytes
  let isDamaged = (flags & 0xe0) !== 0

  function addField(end: number) {
    if (end - at <= maxPlainFieldBytes) fields.push({ start: at, end })
    isDamaged ||= end > source.bytes
    at = end
  }

  function addText(): string {
    const end = source.find(zero, at, at + maxTextBytes)
    const text = source.read(at, end === -1 ? at : end).toString('latin1')
    isDamaged ||= end === -1
    addField(end === -1 ? at : end + 1)
    return text
  }

  if ((flags & 4) !== 0) {
    const length = source.read(at, at + 2)
    addField(at + 2 + (length.length < 2 ? 0 : length.readUInt16LE(0)))
  }
  const name = (flags & 8) === 0 ? '' : addText()
  if ((flags & 16) !== 0) addText()
  if ((flags & 2) !== 0) addField(at + 2)
  return isDamaged ? undefined : { dataAt: at, name, fields, isPlain: head[1] === 0x8b && (flags & ~9) === 0 }
}

const zero = Buffer.alloc(1)
