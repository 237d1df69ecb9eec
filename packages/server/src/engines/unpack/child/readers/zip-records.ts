import { inflateRawSync } from 'node:zlib'
import type { Range, Source } from '../reader.ts'

/** A member as the directory or its own header describes it. */
export type ZipEntry = {
  /** The name as bytes, in latin1, for comparisons. */
  rawName: string
  path: string
  flags: number
  method: number
  crc: number
  packedBytes: number
  unpackedBytes: number
}

/** An entry of the directory, with the place of the member's header as the entry states it. */
export type DirectoryEntry = ZipEntry & { headerAt: number }

/** The header before the data of a member. */
export type LocalEntry = ZipEntry & {
  headerAt: number
  dataAt: number
  /** The sizes and the checksum follow the data, because the writer did not know them before. */
  hasDescriptor: boolean
  /** The extra field could hold content. */
  hasLongExtra: boolean
  /** The sizes are those of zip64, on which ClamAV gives up. */
  isWide: boolean
}

export type EndRecord = {
  at: number
  /** The end of the record without its comment. */
  end: number
  commentBytes: number
  count: number
  directoryBytes: number
  directoryAt: number
  /** The records of zip64 that belong to it. */
  wideRecords: Range[]
  isWide: boolean
}

const endBytes = 22
const locatorBytes = 20
const end64Bytes = 56
const localBytes = 30
const entryBytes = 46
const all16 = 0xffff
const all32 = 0xffff_ffff
/** Extra fields of common writers: zip64, times, owners, AES, Java, and Unicode forms of names. */
const plainFields = new Set([0x0001, 0x000a, 0x5455, 0x5855, 0x6375, 0x7075, 0x7855, 0x7875, 0x9901, 0xcafe])
/** A shorter extra field holds no content. */
const maxPlainExtraBytes = 32

const endMark = Buffer.from('PK\x05\x06', 'latin1')
const locatorMark = 0x0706_4b50
const end64Mark = 0x0606_4b50
const entryMark = 0x0201_4b50
export const localMark = Buffer.from('PK\x03\x04', 'latin1')
export const descriptorMark = Buffer.from('PK\x07\x08', 'latin1')

/** The end records in a range, in order of position; at most `maxCount` of them. */
export function findEndRecords(source: Source, from: number, maxCount: number): EndRecord[] {
  const records: EndRecord[] = []
  for (let at = source.find(endMark, from); at !== -1; at = source.find(endMark, at + 1)) {
    const bytes = source.read(at, at + endBytes)
    if (bytes.length < endBytes) break
    if (records.length === maxCount) break
    records.push(readEndRecord(source, at, bytes))
  }
  return records
}

function readEndRecord(source: Source, at: number, bytes: Buffer): EndRecord {
  const record: EndRecord = {
    at,
    end: at + endBytes,
    commentBytes: bytes.readUInt16LE(20),
    count: bytes.readUInt16LE(10),
    directoryBytes: bytes.readUInt32LE(12),
    directoryAt: bytes.readUInt32LE(16),
    wideRecords: [],
    isWide: false,
  }
  const locator = at >= locatorBytes ? source.read(at - locatorBytes, at) : Buffer.alloc(0)
  if (locator.length < locatorBytes || locator.readUInt32LE(0) !== locatorMark) return record
  // Content before the zip moves its records: the 64-bit end record is where the locator says, or right before it.
  const places = [Number(locator.readBigUInt64LE(8)), at - locatorBytes - end64Bytes]
  for (const end64At of places) {
    const end64 = end64At >= 0 && end64At < source.bytes ? source.read(end64At, end64At + end64Bytes) : locator
    if (end64.length < end64Bytes || end64.readUInt32LE(0) !== end64Mark) continue
    return {
      ...record,
      count: Number(end64.readBigUInt64LE(32)),
      directoryBytes: Number(end64.readBigUInt64LE(40)),
      directoryAt: Number(end64.readBigUInt64LE(48)),
      isWide: true,
      wideRecords: [
        { start: at - locatorBytes, end: at },
        { start: end64At, end: end64At + end64Bytes },
      ],
    }
  }
  return { ...record, isWide: true }
}

/** The entries of a directory from `start`, as far as they can be read; at most `maxCount`. */
export function readDirectory(source: Source, start: number, end: number, maxCount: number) {
  const entries: DirectoryEntry[] = []
  const comments: Range[] = []
  let hasLongExtra = false
  let isWide = false
  let at = start
  while (at + entryBytes <= end && entries.length < maxCount) {
    const head = source.read(at, at + entryBytes)
    if (head.length < entryBytes || head.readUInt32LE(0) !== entryMark) break
    const nameEnd = at + entryBytes + head.readUInt16LE(28)
    const extraEnd = nameEnd + head.readUInt16LE(30)
    const next = extraEnd + head.readUInt16LE(32)
    if (next > source.bytes) break
    const extra = source.read(nameEnd, extraEnd)
    const wide = readWide(extra, [head.readUInt32LE(24), head.readUInt32LE(20), head.readUInt32LE(42)])
    isWide ||= wide.isWide
    hasLongExtra ||= canHoldMore(extra)
    if (next > extraEnd) comments.push({ start: extraEnd, end: next })
    entries.push({
      ...toNames(source.read(at + entryBytes, nameEnd)),
      flags: head.readUInt16LE(8),
      method: head.readUInt16LE(10),
      crc: head.readUInt32LE(16),
      unpackedBytes: wide.values[0],
      packedBytes: wide.values[1],
      headerAt: wide.values[2],
    })
    at = next
  }
  return { entries, comments, hasLongExtra, isWide, end: at }
}

/** The header at a position; undefined when there is none. */
export function readLocal(source: Source, headerAt: number): LocalEntry | undefined {
  if (headerAt < 0 || headerAt + localBytes > source.bytes) return undefined
  const head = source.read(headerAt, headerAt + localBytes)
  if (!head.subarray(0, 4).equals(localMark)) return undefined
  const nameEnd = headerAt + localBytes + head.readUInt16LE(26)
  const dataAt = nameEnd + head.readUInt16LE(28)
  const extra = source.read(nameEnd, dataAt)
  const wide = readWide(extra, [head.readUInt32LE(22), head.readUInt32LE(18), 0])
  const flags = head.readUInt16LE(6)
  return {
    ...toNames(source.read(headerAt + localBytes, nameEnd)),
    flags,
    method: head.readUInt16LE(8),
    crc: head.readUInt32LE(14),
    unpackedBytes: wide.values[0],
    packedBytes: wide.values[1],
    headerAt,
    dataAt,
    hasDescriptor: (flags & 8) !== 0,
    hasLongExtra: canHoldMore(extra),
    isWide: wide.isWide,
  }
}

/** Whether an extra field is long enough to hold content and is none of those that common writers use. */
function canHoldMore(extra: Buffer): boolean {
  let at = 0
  while (at + 4 <= extra.length) {
    const bytes = extra.readUInt16LE(at + 2)
    if (bytes > maxPlainExtraBytes && !plainFields.has(extra.readUInt16LE(at))) return !isZero(extra.subarray(at + 6))
    at += 4 + bytes
  }
  return at !== extra.length && extra.length - at > 3
}

const isZero = (bytes: Buffer) => bytes.every((byte) => byte === 0)

const toNames = (name: Buffer) => ({ rawName: name.toString('latin1'), path: name.toString('utf8') })

type WideValues = [size: number, packed: number, offset: number]

/** Reads the 64-bit field, which holds only the values that do not fit into 32 bits, in this order. */
function readWide(extra: Buffer, values: WideValues): { isWide: boolean; values: WideValues } {
  if (!values.includes(all32)) return { isWide: false, values }
  for (let at = 0; at + 4 <= extra.length; at += 4 + extra.readUInt16LE(at + 2)) {
    if (extra.readUInt16LE(at) !== 1) continue
    const field = extra.subarray(at + 4, at + 4 + extra.readUInt16LE(at + 2))
    let next = 0
    const wide = values.map((value) => {
      if (value !== all32 || next + 8 > field.length) return value
      next += 8
      return Number(field.readBigUInt64LE(next - 8))
    })
    return { isWide: true, values: wide as WideValues }
  }
  return { isWide: true, values }
}

/** Whether programs agree about the number of members: 65,535 stands for any larger number. */
export const agreesOnCount = ({ count }: EndRecord, entries: number): boolean =>
  count === entries || (count === all16 && entries > all16)

const maxPackedManifestBytes = 2 ** 20
const maxManifestBytes = 8 * 2 ** 20
const manifestName = 'META-INF/manifest.xml'
const encryptionMark = 'encryption-data'

/** Whether a member is the manifest of an OpenDocument file and names parts that are encrypted with a password. */
export function namesEncryptedParts(source: Source, entry: ZipEntry, local: LocalEntry): boolean {
  if (entry.path !== manifestName || entry.packedBytes > maxPackedManifestBytes) return false
  const packed = source.read(local.dataAt, local.dataAt + entry.packedBytes)
  try {
    const manifest = entry.method === 8 ? inflateRawSync(packed, { maxOutputLength: maxManifestBytes }) : packed
    return manifest.includes(encryptionMark)
  } catch {
    return false
  }
}

/** Methods of compression that programs know. */
const knownMethods = new Set([0, 1, 6, 8, 9, 12, 14, 20, 93, 95, 96, 97, 98, 99])
/** Whether a local header that no directory names may be one: its data lies within the content. */
export const isPlausible = (local: LocalEntry, source: Source) =>
  knownMethods.has(local.method) &&
  local.rawName.length > 0 &&
  local.dataAt <= source.bytes &&
  local.dataAt + local.packedBytes <= source.bytes
