import type { Content } from './content.ts'

/**
 * Whether the list of members is encrypted, so that the unpacker could only fail without a reason, or the content is an
 * Office document with a password, which ClamAV calls OK. The unpacker itself reports encrypted members of a clear
 * list.
 */
export async function isEncryptedInside(content: Content, format: string): Promise<boolean> {
  switch (format) {
    case '7z':
      return await hasEncryptedHeader7z(content)
    case 'rar':
      return hasEncryptedHeaderRar4(content.head)
    case 'rar5':
      return hasEncryptedHeaderRar5(content.head) || (await hasEncryptedFileRar5(content))
    case 'ole':
      return await holdsEncryptedPackage(content)
    default:
      return false
  }
}

const aes7z = Buffer.from('06f10701', 'hex')
const maxHeaderBytes = 65_536

/** A packed list names its coders. If AES is among them, the list itself is encrypted. */
async function hasEncryptedHeader7z(content: Content): Promise<boolean> {
  const { head, bytes } = content
  if (head.length < 32) return false
  const start = 32 + Number(head.readBigUInt64LE(12))
  const length = Number(head.readBigUInt64LE(20))
  if (length > maxHeaderBytes || start + length > bytes) return false
  const header = await readRange(content, start, start + length)
  return header[0] === 0x17 && header.includes(aes7z)
}

/** Whether the main header, which follows the signature, has the flag for an encrypted list. */
const hasEncryptedHeaderRar4 = (head: Buffer) =>
  head.length >= 12 && head[9] === 0x73 && (head.readUInt16LE(10) & 0x0080) !== 0

/** An encryption header replaces the main one. Before its type are a checksum and a size of at most three bytes. */
function hasEncryptedHeaderRar5(head: Buffer): boolean {
  let at = 12
  while (at < 15 && ((head[at] ?? 0) & 0x80) !== 0) at++
  return head[at + 1] === 4
}

const rar5StartBytes = 8
const maxRar5Headers = 1000
const maxRar5HeaderBytes = 16_384

/**
 * Whether a file has an encryption record. 7-Zip extracts noise from an encrypted file that states no checksum, without
 * a message.
 */
async function hasEncryptedFileRar5(content: Content): Promise<boolean> {
  let at = rar5StartBytes
  for (let count = 0; count < maxRar5Headers && at < content.bytes; count++) {
    const bytes = await readRange(content, at, Math.min(content.bytes, at + maxRar5HeaderBytes))
    const read = openNumbers(bytes, 4)
    const length = read.next()
    const headerEnd = read.position() + length
    const type = read.next()
    const flags = read.next()
    const extraBytes = (flags & 1) === 0 ? 0 : read.next()
    const dataBytes = (flags & 2) === 0 ? 0 : read.next()
    if (length === 0 || headerEnd > bytes.length || type > 5) return false
    const isFile = type === 2 || type === 3
    if (isFile && hasEncryptionRecord(bytes.subarray(Math.max(0, headerEnd - extraBytes), headerEnd))) return true
    at += headerEnd + dataBytes
  }
  return false
}

/** Each record of the extra area has its length, its type and its data; the type 1 is encryption. */
function hasEncryptionRecord(extra: Buffer): boolean {
  const read = openNumbers(extra, 0)
  while (read.position() < extra.length) {
    const length = read.next()
    const start = read.position()
    if (length === 0) return false
    if (read.next() === 1) return true
    read.skipTo(start + length)
  }
  return false
}

/** Reads numbers of 7 bits per byte, the lowest first. */
function openNumbers(bytes: Buffer, start: number) {
  let at = start
  return {
    next(): number {
      let value = 0
      for (let shift = 0; shift < 49; shift += 7) {
        const byte = bytes[at++] ?? 0
        value += (byte & 0x7f) * 2 ** shift
        if (byte < 0x80) break
      }
      return value
    },
    skipTo(position: number) {
      at = position
    },
    position: () => at,
  }
}

const packageName = Buffer.from('EncryptedPackage', 'utf16le')

/**
 * Looks for a stream name in the directory, whose first sector the header names. Such a document has about ten streams.
 */
async function holdsEncryptedPackage(content: Content): Promise<boolean> {
  const { head, bytes } = content
  if (head.length < 512) return false
  const sectorBytes = 2 ** Math.min(12, head.readUInt16LE(30))
  const start = (head.readUInt32LE(48) + 1) * sectorBytes
  if (start >= bytes) return false
  const list = await readRange(content, start, Math.min(bytes, start + 8192))
  return list.includes(packageName)
}

export type ZipDirectory = {
  encrypted: boolean
  /** The zip has more members or a longer directory than Assay reads. */
  tooLarge: boolean
  largestBytes: number
  totalBytes: number
}

const maxEntries = 100_000
const maxDirectoryBytes = 16 * 2 ** 20
const endBytes = 22
const maxCommentBytes = 65_535
const locatorBytes = 20
const all32 = 0xffff_ffff

const signatures = {
  end: 0x0605_4b50,
  end64: 0x0606_4b50,
  locator: 0x0706_4b50,
  entry: 0x0201_4b50,
}
const endMark = Buffer.from('PK\x05\x06', 'latin1')

/**
 * Reads the directory that most programs use, for what it announces: sizes and encryption. Whether other readings exist
 * is for the readers to find out. Never throws for bad bytes.
 */
export async function readZipDirectory(content: Content): Promise<ZipDirectory> {
  const zip: ZipDirectory = {
    encrypted: false,
    tooLarge: false,
    largestBytes: 0,
    totalBytes: 0,
  }
  const tailStart = Math.max(0, content.bytes - endBytes - maxCommentBytes - locatorBytes)
  const tail = await readRange(content, tailStart, content.bytes)
  const endAt = tail.lastIndexOf(endMark)
  if (endAt === -1 || endAt + endBytes > tail.length) return zip
  const end = await findDirectory(content, tail, endAt, tailStart)
  if (end === undefined) return zip
  if (end.count > maxEntries || end.bytes > maxDirectoryBytes) {
    zip.tooLarge = true
    return zip
  }
  const directory = await readRange(content, end.start, Math.min(content.bytes, end.start + end.bytes))
  addEntries(directory, zip)
  return zip
}

type DirectoryLocation = { start: number; bytes: number; count: number }

async function findDirectory(content: Content, tail: Buffer, endAt: number, tailStart: number) {
  const count = tail.readUInt16LE(endAt + 10)
  const bytes = tail.readUInt32LE(endAt + 12)
  const start = tail.readUInt32LE(endAt + 16)
  const locatorAt = endAt - locatorBytes
  const hasLocator = locatorAt >= 0 && tail.readUInt32LE(locatorAt) === signatures.locator
  if (!hasLocator) return findValidLocation(content, { start, bytes, count }, tailStart + endAt)
  const end64At = Number(tail.readBigUInt64LE(locatorAt + 8))
  if (end64At > content.bytes - 56) return undefined
  const end64 = await readRange(content, end64At, end64At + 56)
  if (end64.length < 56 || end64.readUInt32LE(0) !== signatures.end64) return undefined
  const location = {
    start: Number(end64.readBigUInt64LE(48)),
    bytes: Number(end64.readBigUInt64LE(40)),
    count: Number(end64.readBigUInt64LE(32)),
  }
  return findValidLocation(content, location, end64At)
}

/** Returns undefined when the directory would overlap its end record. */
const findValidLocation = (
  content: Content,
  location: DirectoryLocation,
  before: number,
): DirectoryLocation | undefined =>
  location.start + location.bytes <= Math.min(before, content.bytes) ? location : undefined

/** Adds what the entries announce, as far as they can be read. */
function addEntries(directory: Buffer, zip: ZipDirectory) {
  for (let at = 0, count = 0; at + 46 <= directory.length; count++) {
    if (directory.readUInt32LE(at) !== signatures.entry) return
    if (count === maxEntries) {
      zip.tooLarge = true
      return
    }
    const flags = directory.readUInt16LE(at + 8)
    // Either of two flags, or the method that stands for AES.
    if ((flags & 0x2041) !== 0 || directory.readUInt16LE(at + 10) === 99) zip.encrypted = true
    const nameEnd = at + 46 + directory.readUInt16LE(at + 28)
    const extraEnd = nameEnd + directory.readUInt16LE(at + 30)
    const bytes = readSize(directory.readUInt32LE(at + 24), directory.subarray(nameEnd, extraEnd))
    zip.largestBytes = Math.max(zip.largestBytes, bytes)
    zip.totalBytes += bytes
    at = extraEnd + directory.readUInt16LE(at + 32)
  }
}

/** The size of a member, which is in the 64-bit field when it does not fit into 32 bits, and comes first there. */
function readSize(size: number, extra: Buffer): number {
  if (size !== all32) return size
  for (let at = 0; at + 12 <= extra.length; at += 4 + extra.readUInt16LE(at + 2)) {
    if (extra.readUInt16LE(at) === 1) return Number(extra.readBigUInt64LE(at + 4))
  }
  return size
}

async function readRange(content: Content, start: number, end: number): Promise<Buffer> {
  if (content.whole !== undefined) return content.whole.subarray(start, end)
  const pieces: Buffer[] = []
  for await (const piece of content.read(start, end)) pieces.push(piece)
  return pieces.length === 1 && pieces[0] !== undefined ? pieces[0] : Buffer.concat(pieces)
}
