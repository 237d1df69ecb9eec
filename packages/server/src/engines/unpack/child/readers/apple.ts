import { crc32 } from 'node:zlib'
import { macBinaryBytes, readMacBinary } from '../../../../domain/content/document-formats.ts'
import type { Doubt } from '../../../../domain/ports/engines.ts'
import { hasSignature, type Members, type Range, type Reader, type Reading, type Source } from '../reader.ts'

const appleSingleSignatures = new Set([0x0005_1600, 0x0005_1607])
const appleSingleHeadBytes = 26
const entryBytes = 12
/** The forks of a file. Other entries hold names, dates and icons. */
const forks: Record<number, string> = { 1: '[data fork]', 2: '[resource fork]' }
/** Names, comments, icons, dates, Finder information and attributes of one file system each. */
const lastDescribingEntry = 15

/** Reads AppleSingle and AppleDouble: gives the data fork, the resource fork and entries of unknown kinds. */
export const appleSingleReader: Reader = {
  name: 'AppleSingle',
  recognizes(source) {
    const head = source.read(0, appleSingleHeadBytes)
    return head.length === appleSingleHeadBytes && appleSingleSignatures.has(head.readUInt32BE(0))
  },
  read: readAppleSingle,
}

async function readAppleSingle(source: Source, members: Members): Promise<Reading> {
  const count = source.read(0, appleSingleHeadBytes).readUInt16BE(24)
  const tableEnd = appleSingleHeadBytes + count * entryBytes
  const accounted: Range[] = [{ start: 0, end: Math.min(source.bytes, tableEnd) }]
  const doubts = new Set<Doubt>(tableEnd > source.bytes ? ['UnsupportedContainer'] : [])
  const table = source.read(appleSingleHeadBytes, tableEnd)
  const given = new Set<string>()
  for (let at = 0; at + entryBytes <= table.length; at += entryBytes) {
    const kind = table.readUInt32BE(at)
    const start = table.readUInt32BE(at + 4)
    const end = start + table.readUInt32BE(at + 8)
    if (end > source.bytes) doubts.add('UnsupportedContainer')
    if (start >= source.bytes || start === end || given.has(`${start} ${end}`)) continue
    given.add(`${start} ${end}`)
    accounted.push({ start, end: Math.min(end, source.bytes) })
    const fork = forks[kind]
    if (fork === undefined && kind <= lastDescribingEntry) continue
    await members.give({ path: fork ?? `[entry ${kind}]`, pieces: source.pieces(start, end) })
  }
  return { accounted, doubts: [...doubts] }
}

const toBlockEnd = (end: number) => Math.ceil(end / macBinaryBytes) * macBinaryBytes

/** Reads MacBinary: a header, the data fork and the resource fork, each filled up to 128 bytes. */
export const macBinaryReader: Reader = {
  name: 'MacBinary',
  recognizes: (source) => locateForks(source) !== undefined,
  async read(source, members) {
    const found = locateForks(source)
    if (found === undefined) return { accounted: [], doubts: [] }
    for (const { path, start, end } of found.forks) {
      if (start < end) await members.give({ path, pieces: source.pieces(start, end) })
    }
    const end = toBlockEnd(found.end)
    return {
      accounted: [{ start: 0, end: Math.min(source.bytes, end) }],
      doubts: found.end > source.bytes ? ['UnsupportedContainer'] : [],
    }
  },
}

function locateForks(source: Source) {
  const header = readMacBinary(source.read(0, macBinaryBytes))
  if (header === undefined) return undefined
  const dataAt = toBlockEnd(macBinaryBytes + header.extraBytes)
  const dataEnd = dataAt + header.dataBytes
  const resourceAt = toBlockEnd(dataEnd)
  const end = resourceAt + header.resourceBytes
  // Without a checksum, only forks that fill the content tell the format from others.
  const isFilled = end === source.bytes || toBlockEnd(end) === source.bytes
  if (!header.isCertain && (!isFilled || end === dataAt)) return undefined
  const forks = [
    { path: header.name, start: dataAt, end: dataEnd },
    { path: '[resource fork]', start: resourceAt, end },
  ]
  return { forks, end: header.resourceBytes === 0 ? dataEnd : end }
}

const pbzxSignature = Buffer.from('pbzx')
const pbzxHeadBytes = 12
const chunkHeadBytes = 16
const xzSignature = Buffer.from('fd377a585a00', 'hex')
/** The bit that says in the head of a chunk that another one follows; some programs read on without it. */
const followedBit = 1n << 24n
const maxChunks = 100_000

/** A chunk is an XZ stream, or holds plain bytes that XZ could not make smaller. */
type Chunk = { start: number; end: number; isXz: boolean }

/**
 * Reads pbzx, as packages for macOS have it: chunks of one file, each of them compressed alone. They are given as one
 * file of XZ with several streams, which 7-Zip reads.
 */
export const pbzxReader: Reader = {
  name: 'pbzx',
  recognizes: (source) => source.bytes >= pbzxHeadBytes && hasSignature(source, pbzxSignature),
  read: readPbzx,
}

async function readPbzx(source: Source, members: Members): Promise<Reading> {
  const doubts = new Set<Doubt>()
  const chunks: Chunk[] = []
  let at = pbzxHeadBytes
  for (let isFollowed = true; at < source.bytes; ) {
    if (chunks.length === maxChunks) return { accounted: [], doubts: ['ScanLimitExceeded'] }
    const head = source.read(at, at + chunkHeadBytes)
    const start = at + chunkHeadBytes
    const length = head.length < chunkHeadBytes ? 0 : Number(head.readBigUInt64BE(8))
    if (!isFollowed || length === 0 || start + length > source.bytes) doubts.add('UnsupportedContainer')
    if (length === 0) break
    isFollowed = (head.readBigUInt64BE(0) & followedBit) !== 0n
    at = Math.min(source.bytes, start + length)
    chunks.push({ start, end: at, isXz: hasSignature(source, xzSignature, start) })
  }
  if (chunks.length > 0) await members.give({ path: '', pieces: toXz(source, chunks) })
  return { accounted: [{ start: 0, end: at }], doubts: [...doubts] }
}

async function* toXz(source: Source, chunks: Chunk[]): AsyncGenerator<Uint8Array> {
  for (const { start, end, isXz } of chunks) {
    if (isXz) yield* source.pieces(start, end)
    else yield* wrapInXz(source, start, end)
  }
}

const maxPlainBytes = 65_536
/** Streams without a check of their content. */
const streamFlags = Buffer.alloc(2)

/** Writes plain bytes as an XZ stream that stores them. */
function* wrapInXz(source: Source, start: number, end: number): Generator<Uint8Array> {
  yield Buffer.concat([xzSignature, streamFlags, toChecksum(streamFlags)])
  // The header names one filter, LZMA2 with its smallest dictionary, and is filled up to a multiple of four bytes.
  const blockHeader = Buffer.from([2, 0, 0x21, 1, 0, 0, 0, 0])
  yield Buffer.concat([blockHeader, toChecksum(blockHeader)])
  let blockBytes = blockHeader.length + 4
  for (let at = start; at < end; at += maxPlainBytes) {
    const bytes = source.read(at, Math.min(end, at + maxPlainBytes))
    // The first piece resets the dictionary.
    const head = Buffer.from([at === start ? 1 : 2, 0, 0])
    head.writeUInt16BE(bytes.length - 1, 1)
    yield Buffer.concat([head, bytes])
    blockBytes += head.length + bytes.length
  }
  blockBytes++
  yield Buffer.alloc(1 + toPadding(blockBytes))
  const list = Buffer.from([0, 1, ...toVarint(blockBytes), ...toVarint(end - start)])
  const index = Buffer.concat([list, Buffer.alloc(toPadding(list.length))])
  yield Buffer.concat([index, toChecksum(index)])
  const footer = Buffer.alloc(6)
  footer.writeUInt32LE(index.length / 4, 0)
  yield Buffer.concat([toChecksum(footer), footer, Buffer.from('YZ')])
}

/** The zeros that fill up to a multiple of four bytes. */
const toPadding = (bytes: number) => (4 - (bytes % 4)) % 4

function toChecksum(bytes: Buffer): Buffer {
  const checksum = Buffer.alloc(4)
  checksum.writeUInt32LE(crc32(bytes))
  return checksum
}

/** Seven bits in each byte, the lowest first. */
function toVarint(value: number): number[] {
  return value < 0x80 ? [value] : [(value % 0x80) | 0x80, ...toVarint(Math.floor(value / 0x80))]
}
