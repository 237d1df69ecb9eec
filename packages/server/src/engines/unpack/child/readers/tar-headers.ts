import { hasTarChecksum, tarBlockBytes } from '../../../../domain/content/archive-formats.ts'
import { maxUnpackedBytes } from '../../../../domain/ports/engines.ts'
import type { Source } from '../reader.ts'

export type TarHeader = {
  at: number
  dataAt: number
  path: string
  type: string
  /** The sizes that programs read from the field, without repetition. */
  sizes: number[]
  /** Programs may disagree about the size, or refuse the header. */
  hasOddSize: boolean
  /** Size and checksum are octal numbers, the name is not empty, and the signature is there, as ClamAV wants it. */
  isPlain: boolean
  block: Buffer
}

/** Records of an extended header, and the names that other entries gave to the next one. */
export type Extended = {
  records: Map<string, string>
  /** The pairs of position and size in records of the first sparse form, in order. */
  sparsePairs: string[]
  path?: string
}

/** Reads the header in a block; undefined when the block is none. */
export function readHeader(block: Buffer, at: number): TarHeader | undefined {
  if (!hasTarChecksum(block)) return undefined
  const size = readNumber(block.subarray(124, 136))
  const name = readText(block.subarray(0, 100))
  const mark = block.toString('latin1', 257, 263)
  const prefix = mark === 'ustar\0' ? readText(block.subarray(345, 500)) : ''
  return {
    at,
    dataAt: at + tarBlockBytes,
    path: prefix === '' ? name : `${prefix}/${name}`,
    type: block.toString('latin1', 156, 157),
    sizes: size.values,
    hasOddSize: size.isOdd,
    isPlain: mark.startsWith('ustar') && size.isOctal && readNumber(block.subarray(148, 156)).isOctal && name !== '',
    block,
  }
}

const octal = /^ *([0-7]*) *(?:\0.*)?$/s

/** A number of a header: octal digits, or 95 bits behind a byte that is not text. */
function readNumber(field: Buffer): { values: number[]; isOctal: boolean; isOdd: boolean } {
  const first = field[0] ?? 0
  if (first >= 0x80) {
    const value = BigInt(`0x${field.subarray(1).toString('hex')}`)
    const isNegative = first !== 0x80
    return { values: [isNegative ? 0 : toSafe(value)], isOctal: false, isOdd: isNegative }
  }
  const text = field.toString('latin1')
  const digits = octal.exec(text)?.[1]
  // ClamAV stops at an empty field.
  if (digits === '') return { values: [0], isOctal: false, isOdd: false }
  if (digits !== undefined) return { values: [parseInt(digits, 8)], isOctal: true, isOdd: false }
  // Programs stop at the first character that is no digit, or allow prefixes and separators, or take 0.
  const loose = parseInt(text.replace(/^[\s\0]*[-+]?(?:0o)?/i, ''), 8)
  const python = parseInt(text.replaceAll('_', '').replace(/^\s*\+?(?:0o)?/i, ''), 8)
  const values = [loose, python, 0].map((value) => (Number.isSafeInteger(value) ? Math.max(0, value) : 0))
  return { values: [...new Set(values)], isOctal: false, isOdd: true }
}

const toSafe = (value: bigint) => Math.min(Number(value), Number.MAX_SAFE_INTEGER)

const readText = (field: Buffer) => {
  const end = field.indexOf(0)
  return (end === -1 ? field : field.subarray(0, end)).toString('utf8')
}

/** The end of the data of a member, which fills its last block with zeros. */
export const toBlockEnd = (end: number) => Math.ceil(end / tarBlockBytes) * tarBlockBytes

/** The positions of all blocks that are headers, found in one pass; at most `maxCount`. */
export function listHeaders(source: Source, maxCount: number): number[] {
  const stepBytes = 2 ** 16
  const found: number[] = []
  for (let at = 0; at < source.bytes && found.length < maxCount; at += stepBytes) {
    const bytes = source.read(at, at + stepBytes)
    for (let offset = 0; offset + tarBlockBytes <= bytes.length; offset += tarBlockBytes) {
      if (hasTarChecksum(bytes.subarray(offset, offset + tarBlockBytes))) found.push(at + offset)
    }
  }
  return found
}

/**
 * Adds the records of an extended header, `length key=value` in lines, to those that are known. Returns undefined when
 * they are malformed or contradict each other: programs then differ in what they read.
 */
export function readRecords(bytes: Buffer, known: Extended): Extended | undefined {
  const extended: Extended = { ...known, records: new Map(known.records), sparsePairs: [...known.sparsePairs] }
  const own = new Map<string, string>()
  for (let at = 0; at < bytes.length && bytes[at] !== 0; ) {
    const blank = bytes.indexOf(0x20, at)
    const digits = blank === -1 || blank - at > 10 ? '' : bytes.toString('latin1', at, blank)
    const length = /^[1-9]\d*$/.test(digits) ? Number(digits) : 0
    if (length === 0) return undefined
    const record = bytes.subarray(blank + 1, at + length)
    const equals = record.indexOf(0x3d)
    if (equals < 1 || at + length > bytes.length || record.at(-1) !== 0x0a) return undefined
    const key = record.toString('utf8', 0, equals)
    const value = record.toString('utf8', equals + 1, record.length - 1)
    if (key === 'GNU.sparse.offset' || key === 'GNU.sparse.numbytes') extended.sparsePairs.push(value)
    else if (own.has(key) && own.get(key) !== value && isStructural(key)) return undefined
    own.set(key, value)
    extended.records.set(key, value)
    at += length
  }
  return extended
}

/** Records that decide where data begins and ends. */
export const isStructural = (key: string) => key === 'size' || key.startsWith('GNU.sparse.') || key === 'SUN.holesdata'

type Segment = { offset: number; bytes: number }

/** A file of which only the parts that are not zero are stored. */
export type SparseFile = {
  path?: string
  /** Where the stored parts begin; a map may come before them. */
  dataAt: number
  segments: Segment[]
  realBytes: number
}

const maxSegments = 100_000
const maxMapBytes = 4 * 2 ** 20

/**
 * Finds out whether an entry is a sparse file, in one of the four forms of GNU tar. `damaged` stands for maps that
 * contradict themselves, which programs read in different ways.
 */
export function readSparse(
  source: Source,
  header: TarHeader,
  extended: Extended,
): SparseFile | 'damaged' | 'too large' | undefined {
  const sparse = header.type === 'S' ? readOldSparse(source, header) : readPaxSparse(source, header, extended)
  if (sparse === undefined || sparse === 'damaged') return sparse
  let end = 0
  for (const { offset, bytes } of sparse.segments) {
    if (!Number.isSafeInteger(offset) || !Number.isSafeInteger(bytes) || offset < end || bytes < 0) return 'damaged'
    end = offset + bytes
  }
  if (!Number.isSafeInteger(sparse.realBytes) || end > sparse.realBytes) return 'damaged'
  return sparse.realBytes > maxUnpackedBytes ? 'too large' : sparse
}

/** The map is in the header, and goes on in blocks between the header and the data. */
function readOldSparse(source: Source, { block, dataAt }: TarHeader): SparseFile | 'damaged' {
  const segments: Segment[] = []
  let isOdd = false

  function add(map: Buffer, count: number) {
    for (let n = 0; n < count; n++) {
      const [offset, bytes] = [map.subarray(n * 24, n * 24 + 12), map.subarray(n * 24 + 12, n * 24 + 24)]
      if ((bytes[0] ?? 0) === 0) return
      const values = [readNumber(offset), readNumber(bytes)] as const
      isOdd ||= values.some((value) => value.isOdd)
      segments.push({ offset: values[0].values[0] ?? 0, bytes: values[1].values[0] ?? 0 })
    }
  }

  add(block.subarray(386, 482), 4)
  let isExtended = block[482] !== 0
  let at = dataAt
  while (isExtended) {
    const more = source.read(at, at + tarBlockBytes)
    if (more.length < tarBlockBytes || segments.length > maxSegments) return 'damaged'
    add(more, 21)
    isExtended = more[504] !== 0
    at += tarBlockBytes
  }
  const real = readNumber(block.subarray(483, 495))
  if (isOdd || real.isOdd) return 'damaged'
  return { dataAt: at, segments, realBytes: real.values[0] ?? 0 }
}

function readPaxSparse(
  source: Source,
  header: TarHeader,
  { records, sparsePairs }: Extended,
): SparseFile | 'damaged' | undefined {
  const isSparse = [...records.keys()].some((key) => key.startsWith('GNU.sparse.'))
  if (!isSparse) return undefined
  const path = records.get('GNU.sparse.name')
  const real = records.get('GNU.sparse.realsize') ?? records.get('GNU.sparse.size')
  const name = path === undefined ? {} : { path }
  const file = { ...name, realBytes: toNumber(real), dataAt: header.dataAt }
  if (records.get('GNU.sparse.major') === '1') return readStoredMap(source, file)
  const map = records.get('GNU.sparse.map')
  const numbers = (map === undefined ? sparsePairs : map.split(',')).map(toNumber)
  if (numbers.length % 2 !== 0 || numbers.length > 2 * maxSegments) return 'damaged'
  return { ...file, segments: toSegments(numbers) }
}

/** Newer sparse files begin with their map: a count and pairs, each number in a line, filled up to a block. */
function readStoredMap(source: Source, file: Omit<SparseFile, 'segments'>): SparseFile | 'damaged' {
  const bytes = source.read(file.dataAt, Math.min(source.bytes, file.dataAt + maxMapBytes))
  const numbers: number[] = []
  let at = 0
  for (let left = 1; left > 0; left--) {
    const end = bytes.indexOf(0x0a, at)
    if (end === -1 || end - at > 20) return 'damaged'
    const value = toNumber(bytes.toString('latin1', at, end))
    if (numbers.length === 0) left += 2 * value
    if (Number.isNaN(value) || left > 2 * maxSegments + 1) return 'damaged'
    numbers.push(value)
    at = end + 1
  }
  return { ...file, dataAt: file.dataAt + toBlockEnd(at), segments: toSegments(numbers.slice(1)) }
}

const toNumber = (text: string | undefined) => (text !== undefined && /^\d{1,16}$/.test(text) ? Number(text) : NaN)

function toSegments(numbers: number[]): Segment[] {
  return Array.from({ length: numbers.length >> 1 }, (_, n) => ({
    offset: numbers[2 * n] ?? 0,
    bytes: numbers[2 * n + 1] ?? 0,
  }))
}

/** The whole file, with zeros where nothing is stored. */
export function* expandSparse(source: Source, { segments, dataAt, realBytes }: SparseFile): Generator<Buffer> {
  let written = 0
  let at = dataAt
  for (const { offset, bytes } of [...segments, { offset: realBytes, bytes: 0 }]) {
    while (written < offset) {
      const piece = zeros.subarray(0, offset - written)
      written += piece.length
      yield piece
    }
    yield* source.pieces(at, at + bytes)
    at += bytes
    written += bytes
  }
}

const zeros = Buffer.alloc(2 ** 16)
