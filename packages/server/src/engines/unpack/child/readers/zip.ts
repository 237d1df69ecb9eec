import type { Doubt } from '../../../../domain/ports/engines.ts'
import { decompress, inflateSmall, smallBytes } from '../inflate.ts'
import { findGaps, hasSignature, type Members, type Range, type Reader, type Reading, type Source } from '../reader.ts'
import {
  agreesOnCount,
  type DirectoryEntry,
  descriptorMark,
  type EndRecord,
  findEndRecords,
  isPlausible,
  type LocalEntry,
  localMark,
  namesEncryptedParts,
  readDirectory,
  readLocal,
  type ZipEntry,
} from './zip-records.ts'

/** Programs look for the end record within the longest possible comment; some look a little further. */
const tailBytes = 128 * 1024
const maxEndRecords = 1000
const maxEntries = 100_000
/** Heads of zips, of parts of them, and of zips that were written in one pass to several disks. */
const heads = ['PK\x03\x04', 'PK\x05\x06', 'PK\x06\x06', 'PK\x07\x08PK', 'PK00PK'].map((text) =>
  Buffer.from(text, 'latin1'),
)

/**
 * Reads a zip by each of its end records, and by the headers of members that no directory names. Programs differ in
 * which of these they use.
 */
export const zipReader: Reader = {
  name: 'zip',
  recognizes: (source) =>
    beginsAsZip(source) || findEndRecords(source, Math.max(0, source.bytes - tailBytes), 1).length > 0,
  read: readZip,
  unpackAs: 'zip',
}

const beginsAsZip = (source: Source) => heads.some((head) => hasSignature(source, head))

type Zip = {
  source: Source
  members: Members
  accounted: Range[]
  doubts: Set<Doubt>
  /** Programs read the same bytes as different members. */
  isAmbiguous: boolean
  /** ClamAV reads the same members from the same bytes. */
  isPlain: boolean
  needsSevenZip: boolean
  /** Several zips, or members that no directory names: 7-Zip gives those of one. */
  isJoined: boolean
  /** Readings that were given, as position, size and method. */
  given: Set<string>
}

async function readZip(source: Source, members: Members): Promise<Reading> {
  const zip: Zip = {
    source,
    members,
    accounted: [],
    doubts: new Set(),
    isAmbiguous: false,
    isPlain: true,
    needsSevenZip: false,
    isJoined: false,
    given: new Set(),
  }
  const ends = findEndRecords(source, 0, maxEndRecords)
  if (ends.length === maxEndRecords) zip.doubts.add('ScanLimitExceeded')
  const pairs = listMembers(zip, ends)
  if (pairs.length > maxEntries) zip.isPlain = false
  for (const { entry, local } of pairs) checkAgreement(zip, entry, local)
  for (const { local } of pairs) if (local !== undefined) accountHeader(zip, local)
  const strays = findStrayHeaders(zip, pairs)
  zip.isJoined ||= strays.length > 0
  zip.isPlain &&= !zip.isJoined && !zip.isAmbiguous
  for (const { entry, local } of pairs) if (local !== undefined) await giveBoth(zip, entry, local)
  for (const local of strays) await giveStray(zip, local)
  // A zip without an end record was cut off: programs differ in what they make of it.
  if (zip.isAmbiguous || ends.length === 0 || (zip.isJoined && zip.needsSevenZip))
    zip.doubts.add('UnsupportedContainer')
  const { accounted, needsSevenZip } = zip
  return { accounted, doubts: [...zip.doubts], needsSevenZip }
}

type Pair = { entry: DirectoryEntry; local: LocalEntry | undefined }

/**
 * The members that the end records lead to. One that lies in the data of a member belongs to a zip in this zip, which is
 * read when that member is.
 */
function listMembers(zip: Zip, ends: EndRecord[]): Pair[] {
  const pairs: Pair[] = []
  const data: Range[] = []
  for (const end of ends.toReversed()) {
    if (data.some((range) => range.start <= end.at && end.end <= range.end)) continue
    if (pairs.length > 0) zip.isJoined = true
    for (const entry of listEntries(zip, end, end === ends.at(-1))) {
      const local = readLocal(zip.source, entry.headerAt)
      pairs.push({ entry, local })
      if (local !== undefined) data.push({ start: local.dataAt, end: local.dataAt + entry.packedBytes })
    }
  }
  return pairs
}

/** The entries that an end record leads to, and with which shift: content before a zip moves all its offsets. */
function listEntries(zip: Zip, end: EndRecord, isLast: boolean): DirectoryEntry[] {
  const { source } = zip
  const wideStart = Math.min(end.at, ...end.wideRecords.map(({ start }) => start))
  const places = [...new Set([wideStart - end.directoryBytes, end.directoryAt])]
  const directories = places
    .filter((place) => place >= 0 && place < end.at)
    .map((place) => ({ place, ...readDirectory(source, place, end.at, maxEntries) }))
    .filter(({ entries }) => entries.length > 0)
  if (directories.length === 0) return accountEmpty(zip, end, isLast)
  if (directories.length > 1) zip.isAmbiguous = true
  if (end.isWide) zip.isPlain = false
  const shift = wideStart - end.directoryBytes - end.directoryAt
  zip.accounted.push({ start: end.at, end: end.end }, ...end.wideRecords)
  return directories.flatMap((directory) => {
    const { entries, comments, place } = directory
    if (!agreesOnCount(end, entries.length) || directory.end !== place + end.directoryBytes) zip.isPlain = false
    if (directory.isWide || directory.hasLongExtra || comments.length > 0 || shift !== 0) zip.isPlain = false
    if (!directory.hasLongExtra) {
      zip.accounted.push(
        ...findGaps(comments, directory.end).map((gap) => ({ ...gap, start: Math.max(gap.start, place) })),
      )
    }
    return entries.flatMap((entry) => shiftEntry(zip, entry, shift))
  })
}

/** An entry at the place that it states, and at the one that is moved by the content before the zip. */
function shiftEntry({ source }: Zip, entry: DirectoryEntry, shift: number): DirectoryEntry[] {
  const moved = { ...entry, headerAt: entry.headerAt + shift }
  if (shift === 0) return [entry]
  const places = [moved, entry].filter(({ headerAt }) => readLocal(source, headerAt) !== undefined)
  return places.length === 0 ? [moved] : places
}

/**
 * The last end record of content that begins as a zip counts even when it leads nowhere. Others are then bytes of
 * something else, such as a zip that was compressed a little.
 */
function accountEmpty(zip: Zip, end: EndRecord, isLast: boolean): DirectoryEntry[] {
  if (!isLast || !beginsAsZip(zip.source)) return []
  zip.accounted.push({ start: end.at, end: end.end }, ...end.wideRecords)
  if (end.count > 0 || end.directoryBytes > 0) zip.isAmbiguous = true
  zip.isPlain = false
  return []
}

const isEncrypted = ({ flags, method }: ZipEntry) => (flags & 0x2041) !== 0 || method === 99

/** Compares the header of a member with the directory. Levels of compression are no difference. */
function checkAgreement(zip: Zip, entry: DirectoryEntry, local: LocalEntry | undefined) {
  if (isEncrypted(entry) || (local !== undefined && isEncrypted(local))) zip.doubts.add('EncryptedContent')
  if (local === undefined) {
    zip.isAmbiguous = true
    return
  }
  const isSizeKnown = !local.hasDescriptor || local.packedBytes > 0
  const agrees =
    local.rawName === entry.rawName &&
    local.method === entry.method &&
    ((local.flags ^ entry.flags) & ~0x0806) === 0 &&
    (!isSizeKnown || (local.packedBytes === entry.packedBytes && local.unpackedBytes === entry.unpackedBytes)) &&
    (local.crc === entry.crc || (local.hasDescriptor && local.crc === 0))
  if (!agrees || local.dataAt + entry.packedBytes > zip.source.bytes) zip.isAmbiguous = true
  if (local.hasLongExtra || local.isWide || hasTwoSizes(entry) || hasTwoSizes(local)) zip.isPlain = false
  if (namesEncryptedParts(zip.source, entry, local)) zip.doubts.add('EncryptedContent')
}

/** Whether a member that is stored as it is states two sizes. ClamAV leaves out one that is longer than its data. */
const hasTwoSizes = ({ method, packedBytes, unpackedBytes }: ZipEntry) => method === 0 && packedBytes !== unpackedBytes

function accountHeader(zip: Zip, local: LocalEntry) {
  const nameEnd = local.headerAt + 30 + local.rawName.length
  zip.accounted.push({ start: local.headerAt, end: local.hasLongExtra ? nameEnd : local.dataAt })
}

/** Gives the member as the directory describes it, and as its own header does where that is different. */
async function giveBoth(zip: Zip, entry: DirectoryEntry, local: LocalEntry) {
  const end = await giveMember(zip, entry, local.dataAt, entry.packedBytes)
  // The bytes behind the data may belong to others, so that this reading accounts for nothing.
  if (hasTwoSizes(entry)) await giveMember(zip, entry, local.dataAt, entry.unpackedBytes, { isSizeUnknown: true })
  if (entry.packedBytes === 0 && hidesData(zip, local)) {
    const rest = zip.source.bytes - local.dataAt
    await giveMember(zip, local, local.dataAt, rest, { isSizeUnknown: true })
  }
  if (local.hasDescriptor) accountDescriptor(zip, end)
  const differs = local.method !== entry.method || local.packedBytes !== entry.packedBytes
  const isUnknown = local.hasDescriptor && local.packedBytes === 0
  if (differs && !isUnknown) await giveMember(zip, local, local.dataAt, local.packedBytes)
}

/** Whether a deflated member has data but no size: gzip and pigz decode what follows the first header. */
function hidesData({ source }: Zip, { method, packedBytes, dataAt }: LocalEntry): boolean {
  return (
    method === 8 &&
    packedBytes === 0 &&
    dataAt < source.bytes &&
    source.read(dataAt, dataAt + 2).toString('latin1') !== 'PK'
  )
}

/** Gives a member that no directory names, for programs that read the headers in a stream. */
async function giveStray(zip: Zip, local: LocalEntry) {
  if (isEncrypted(local)) zip.doubts.add('EncryptedContent')
  const isUnknown = (local.hasDescriptor && local.packedBytes === 0) || hidesData(zip, local)
  accountHeader(zip, local)
  // A stored member of unknown size ends where a descriptor is: programs guess, so the rest is given whole.
  const packedBytes = isUnknown ? zip.source.bytes - local.dataAt : local.packedBytes
  const end = await giveMember(zip, local, local.dataAt, packedBytes, { isSizeUnknown: isUnknown })
  if (local.hasDescriptor) accountDescriptor(zip, end)
}

/**
 * Headers that no directory names, outside of the members that one does. A deflated member may end before its size says,
 * and programs that read a stream go on there.
 */
function findStrayHeaders(zip: Zip, pairs: Pair[]): LocalEntry[] {
  const { source } = zip
  const named = new Set(pairs.map(({ entry }) => entry.headerAt))
  const data = pairs.flatMap(({ entry, local }) => {
    if (local === undefined) return []
    const isStream = local.method === 8 && entry.method === 8
    return [{ start: local.headerAt, end: local.dataAt + (isStream ? 0 : entry.packedBytes) }]
  })
  const strays: LocalEntry[] = []
  for (const gap of findGaps([...zip.accounted, ...data], source.bytes)) {
    for (let at = source.find(localMark, gap.start, gap.end); at !== -1; at = source.find(localMark, at + 4, gap.end)) {
      const local = named.has(at) ? undefined : readLocal(source, at)
      if (local === undefined || !isPlausible(local, source)) continue
      strays.push(local)
      if (strays.length >= maxEntries) return strays
      if (!local.hasDescriptor) at = Math.max(at, local.dataAt + local.packedBytes - 4)
    }
  }
  return strays
}

/** Stored and deflated. Of bzip2, ClamAV reads the first stream alone. */
const clamAvMethods = new Set([0, 8])

/** Gives one reading of a member; returns the end of its data. */
async function giveMember(
  zip: Zip,
  entry: ZipEntry,
  dataAt: number,
  packedBytes: number,
  { isSizeUnknown = false } = {},
): Promise<number> {
  const { source, members } = zip
  const end = Math.min(source.bytes, dataAt + packedBytes)
  const key = `${dataAt} ${packedBytes} ${entry.method}`
  if (zip.given.has(key)) return end
  zip.given.add(key)
  if (!isSizeUnknown) zip.accounted.push({ start: dataAt, end })
  if (isEncrypted(entry) || (packedBytes === 0 && entry.unpackedBytes === 0)) return end
  const isSeen = zip.isPlain && !isSizeUnknown && clamAvMethods.has(entry.method)
  const input = source.pieces(dataAt, end)
  if (entry.method === 0) {
    await members.give({ path: entry.path, pieces: input, isSeen })
    return end
  }
  const method = entry.method === 8 ? 'deflate' : entry.method === 93 || entry.method === 20 ? 'zstd' : undefined
  if (method === undefined) {
    zip.needsSevenZip ||= !isSeen
    return end
  }
  const isSmall = method === 'deflate' && packedBytes <= smallBytes && !isSizeUnknown
  const inflated = isSmall ? inflateSmall(source.read(dataAt, end)) : undefined
  if (inflated !== undefined) {
    await members.give({ path: entry.path, pieces: [inflated], isSeen })
    return end
  }
  const { pieces, getUsedBytes } = decompress(method, input)
  try {
    await members.give({ path: entry.path, pieces, isSeen })
  } catch {
    zip.doubts.add('UnsupportedContainer')
  }
  if (!isSizeUnknown) return end
  zip.accounted.push({ start: dataAt, end: dataAt + getUsedBytes() })
  return dataAt + getUsedBytes()
}

/** Checksum and sizes behind the data, of 32 or 64 bits, with or without a signature. */
function accountDescriptor({ source, accounted }: Zip, at: number) {
  const hasMark = source.read(at, at + 4).equals(descriptorMark)
  const bytes = (hasMark ? 4 : 0) + 12
  const next = source.read(at + bytes, at + bytes + 2)
  const isShort = next.length === 0 || next.toString('latin1') === 'PK'
  accounted.push({ start: at, end: at + bytes + (isShort ? 0 : 8) })
}
