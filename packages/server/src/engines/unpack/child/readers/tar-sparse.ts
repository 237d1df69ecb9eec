import { maxUnpackedBytes } from '../../../../domain/ports/engines.ts'
import type { Source } from '../source.ts'
import { type Extended, readNumber, type TarHeader } from './tar-headers.ts'

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
    const more = source.read(at, at + 512)
    if (more.length < 512 || segments.length > maxSegments) return 'damaged'
    add(more, 21)
    isExtended = more[504] !== 0
    at += 512
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
  return { ...file, dataAt: file.dataAt + Math.ceil(at / 512) * 512, segments: toSegments(numbers.slice(1)) }
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
