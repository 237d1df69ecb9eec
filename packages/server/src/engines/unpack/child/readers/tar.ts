import { hasOldTarHeader, hasTarSignature, tarBlockBytes } from '../../../../domain/content/archive-formats.ts'
import { headBytes } from '../../../../domain/content/content.ts'
import type { Doubt } from '../../../../domain/ports/engines.ts'
import { findNonZero, type Members, type Range, type Reader, type Reading, type Source } from '../reader.ts'
import {
  type Extended,
  expandSparse,
  isStructural,
  listHeaders,
  readHeader,
  readRecords,
  readSparse,
  type TarHeader,
  toBlockEnd,
} from './tar-headers.ts'

const maxHeaders = 200_000
const maxExtendedBytes = 2 ** 20
/** Longer extended headers are searched as content of their own. */
const maxPlainExtendedBytes = 16 * 1024

/**
 * Reads a tar as GNU tar, libarchive, Python and 7-Zip do. Where they disagree about the place of the next header, each
 * of the places is followed, and the tar is in doubt.
 */
export const tarReader: Reader = {
  name: 'tar',
  recognizes(source) {
    const head = source.read(0, headBytes)
    return hasTarSignature(head) || hasOldTarHeader(head)
  },
  read: readTar,
}

type Tar = {
  source: Source
  members: Members
  accounted: Range[]
  doubts: Set<Doubt>
  /** ClamAV has read every header up to here in the same way. */
  isPlain: boolean
  given: Set<string>
  /** The positions of all headers, once they are needed. */
  headers: number[] | undefined
}

/** A place where some program expects a header, and what the entries before say about it. */
type Place = { at: number; extended: Extended; globals: Extended }

const none: Extended = { records: new Map(), sparsePairs: [] }

async function readTar(source: Source, members: Members): Promise<Reading> {
  const tar: Tar = {
    source,
    members,
    accounted: [],
    doubts: new Set(),
    isPlain: true,
    given: new Set(),
    headers: undefined,
  }
  const visited = new Set<string>()
  const places: Place[] = [{ at: 0, extended: none, globals: none }]
  for (let place = places.pop(); place !== undefined; place = places.pop()) {
    const size = place.extended.records.get('size') ?? place.globals.records.get('size') ?? ''
    const key = `${place.at} ${size} ${place.extended.records.size}`
    if (visited.has(key)) continue
    visited.add(key)
    if (visited.size > maxHeaders) {
      tar.doubts.add('ScanLimitExceeded')
      break
    }
    places.push(...(await readPlace(tar, place)))
  }
  return { accounted: tar.accounted, doubts: [...tar.doubts] }
}

function addDoubt(tar: Tar) {
  tar.doubts.add('UnsupportedContainer')
  tar.isPlain = false
}

function account({ accounted }: Tar, start: number, end: number) {
  const last = accounted.at(-1)
  if (last !== undefined && last.end === start) last.end = end
  else accounted.push({ start, end })
}

/** Reads what is at a place. Returns the places that come next. */
async function readPlace(tar: Tar, place: Place): Promise<Place[]> {
  const { source } = tar
  if (place.at >= source.bytes) return []
  const block = source.read(place.at, place.at + tarBlockBytes)
  if (block.every((byte) => byte === 0)) return findAfterEnd(tar, place.at)
  const header = readHeader(block, place.at)
  if (header === undefined) {
    addDoubt(tar)
    return findNextHeader(tar, place.at + tarBlockBytes)
  }
  account(tar, header.at, header.dataAt)
  tar.isPlain &&= header.isPlain
  if (header.hasOddSize) addDoubt(tar)
  if (namedTypes.has(header.type)) return readExtension(tar, place, header)
  return giveEntry(tar, place, header)
}

/** Entries that describe the next one: long names, extended headers of it, and of all that follow. */
const namedTypes = new Set(['L', 'K', 'x', 'X', 'g'])

async function readExtension(tar: Tar, { extended, globals }: Place, header: TarHeader): Promise<Place[]> {
  const { source } = tar
  const { dataAt, type, sizes } = header
  if (type === 'L' || type === 'K') {
    for (const size of sizes) {
      const end = dataAt + size
      // Programs that do not know long names extract them as files.
      if (!isLongName(source.read(dataAt, Math.min(end, dataAt + maxNameBytes + 1)))) {
        await giveOnce(tar, { path: header.path, start: dataAt, end, isSeen: false })
      }
    }
  }
  return sizes.map((size) => {
    const end = dataAt + size
    const next = { at: toBlockEnd(end), extended, globals }
    if (end > source.bytes || size > maxExtendedBytes) {
      addDoubt(tar)
      return next
    }
    if (size <= maxPlainExtendedBytes) account(tar, dataAt, Math.min(next.at, source.bytes))
    const bytes = source.read(dataAt, end)
    if (type === 'K') return next
    if (type === 'L') return { ...next, extended: { ...extended, path: toText(bytes) } }
    const read = readRecords(bytes, type === 'g' ? globals : extended)
    if (read === undefined) addDoubt(tar)
    // Programs disagree on whether sizes for all entries count.
    else if (type === 'g' && [...read.records.keys()].some(isStructural)) addDoubt(tar)
    if (read === undefined) return next
    return type === 'g' ? { ...next, globals: read } : { ...next, extended: read }
  })
}

/** The longest name that systems take, with its end. */
const maxNameBytes = 4097
const shortestLongName = 100

/** Whether data is a name that did not fit into a header: text in one line, with a zero behind it. */
function isLongName(data: Buffer): boolean {
  if (data.length <= shortestLongName || data.length > maxNameBytes || data.at(-1) !== 0) return false
  return data.subarray(0, -1).every((byte) => byte >= 0x20)
}

const toText = (bytes: Buffer) => bytes.toString('utf8').replace(/\0.*$/s, '')

/** Types of entries without data: links, devices, folders and pipes. */
const typesWithoutData = new Set(['1', '2', '3', '4', '5', '6'])
/** Types that ClamAV takes for files. */
const plainTypes = new Set(['0', '\0', '7'])

/** Gives the data of an entry, by each of its possible sizes. */
async function giveEntry(tar: Tar, { extended, globals }: Place, header: TarHeader): Promise<Place[]> {
  const { source } = tar
  const { dataAt, type } = header
  const sizes = listSizes(tar, header, [extended, globals])
  const path = (extended.path ?? extended.records.get('path') ?? header.path).replace(/^\/+/, '')
  // ClamAV may expect the next header elsewhere behind entries that it does not know.
  if (!plainTypes.has(type) && !typesWithoutData.has(type)) tar.isPlain = false
  const isFolder = plainTypes.has(type) && path.endsWith('/')
  const next: Place[] = []
  if ((typesWithoutData.has(type) || isFolder) && sizes.some((size) => size > 0)) {
    // Some programs expect the next header right behind this one, others behind the data.
    addDoubt(tar)
    next.push({ at: dataAt, extended: none, globals })
  }
  if (type === 'M' || extended.records.has('SUN.holesdata')) addDoubt(tar)
  const sparse = readSparse(source, header, extended)
  const mapBytes = type === 'S' && typeof sparse === 'object' ? sparse.dataAt - dataAt : 0
  if (sparse === 'damaged') addDoubt(tar)
  else if (sparse === 'too large') tar.doubts.add('ScanLimitExceeded')
  else if (sparse !== undefined) await giveSparse(tar, sparse, path)
  for (const size of sizes) {
    const start = dataAt + mapBytes
    const end = start + size
    if (end > source.bytes) addDoubt(tar)
    const isData = !typesWithoutData.has(type) || size > 0
    if (isData) {
      const isSeen = tar.isPlain && plainTypes.has(type) && sparse === undefined
      await giveOnce(tar, { path, start, end, isSeen })
    }
    const blockEnd = toBlockEnd(end)
    account(tar, dataAt, Math.min(blockEnd, source.bytes))
    next.push({ at: blockEnd, extended: none, globals })
  }
  return next
}

/** The sizes of an entry by its header and by the extended headers before it. */
function listSizes(tar: Tar, header: TarHeader, extensions: Extended[]): number[] {
  const texts = extensions.flatMap(({ records }) => records.get('size') ?? [])
  const stated = texts.map((text) => (/^\d{1,15}$/.test(text) ? Number(text) : undefined))
  const sizes = [...new Set([...header.sizes, ...stated.filter((size) => size !== undefined)])]
  if (stated.includes(undefined) || sizes.length > 1) addDoubt(tar)
  return sizes
}

async function giveSparse(tar: Tar, sparse: Exclude<ReturnType<typeof readSparse>, string | undefined>, path: string) {
  const { source, members } = tar
  const stored = sparse.segments.reduce((sum, { bytes }) => sum + bytes, 0)
  if (sparse.dataAt + stored > source.bytes) addDoubt(tar)
  else await members.give({ path: sparse.path ?? path, pieces: expandSparse(source, sparse) })
}

async function giveOnce(tar: Tar, { path, start, end, isSeen }: Range & { path: string; isSeen: boolean }) {
  const key = `${start} ${end}`
  if (tar.given.has(key)) return
  if (!tar.isPlain) tar.given.add(key)
  await tar.members.give({ path, pieces: tar.source.pieces(start, end), isSeen })
}

/** Zero blocks end a tar, and some programs can be told to read on behind them. */
function findAfterEnd(tar: Tar, at: number): Place[] {
  const { source } = tar
  const start = findNonZero(source, at)
  account(tar, at, start)
  if (start === source.bytes) return []
  const next = findNextHeader(tar, start - (start % tarBlockBytes))
  if (next.length > 0) addDoubt(tar)
  return next
}

/** GNU tar goes on at the next valid header. */
function findNextHeader(tar: Tar, from: number): Place[] {
  tar.headers ??= listHeaders(tar.source, maxHeaders)
  const at = findAtLeast(tar.headers, from)
  return at === undefined ? [] : [{ at, extended: none, globals: none }]
}

function findAtLeast(sorted: number[], least: number): number | undefined {
  let [low, high] = [0, sorted.length]
  while (low < high) {
    const middle = (low + high) >> 1
    if ((sorted[middle] ?? 0) < least) low = middle + 1
    else high = middle
  }
  return sorted[low]
}
