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
      return hasEncryptedHeaderRar5(content.head)
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
  /** The whole directory was read, and the header of each member agrees with it. */
  sound: boolean
  /** The zip has 64-bit fields. */
  zip64: boolean
  methods: Set<number>
  encrypted: boolean
  /** The zip has more members or a longer directory than Assay reads. */
  tooLarge: boolean
  largestBytes: number
  totalBytes: number
}

type Entry = { flags: number; method: number; offset: number }

const maxEntries = 100_000
const maxDirectoryBytes = 16 * 2 ** 20
const endBytes = 22
const maxCommentBytes = 65_535
const locatorBytes = 20
const localBytes = 30
const all32 = 0xffff_ffff
const all16 = 0xffff

const signatures = {
  end: 0x0605_4b50,
  end64: 0x0606_4b50,
  locator: 0x0706_4b50,
  entry: 0x0201_4b50,
  local: 0x0403_4b50,
}
const endMark = Buffer.from('PK\x05\x06', 'latin1')

/**
 * Reads the directory of a zip. Programs disagree about zips that contradict themselves, and a scanner may see none of
 * the members that another program extracts: such a zip is not `sound`, and the caller unpacks it. Never throws for bad
 * bytes.
 */
export async function readZipDirectory(content: Content): Promise<ZipDirectory> {
  const zip: ZipDirectory = {
    sound: false,
    zip64: false,
    methods: new Set(),
    encrypted: false,
    tooLarge: false,
    largestBytes: 0,
    totalBytes: 0,
  }
  const tailStart = Math.max(0, content.bytes - endBytes - maxCommentBytes - locatorBytes)
  const tail = await readRange(content, tailStart, content.bytes)
  const endAt = tail.lastIndexOf(endMark)
  if (endAt === -1 || endAt + endBytes > tail.length) return zip
  const end = await findDirectory(content, tail, endAt, tailStart, zip)
  if (end === undefined) return zip
  if (end.count > maxEntries || end.bytes > maxDirectoryBytes) {
    zip.tooLarge = true
    return zip
  }
  const directory = await readRange(content, end.start, Math.min(content.bytes, end.start + end.bytes))
  const entries = readEntries(directory, zip)
  // A program that searches from the start finds another directory behind a second end record. A zip that is stored as
  // the last member looks the same, and unpacking it once more does no harm.
  const isOnlyEndRecord = tail.indexOf(endMark) === endAt && endAt + endBytes + end.commentBytes === tail.length
  zip.sound =
    entries !== undefined &&
    entries.length === end.count &&
    isOnlyEndRecord &&
    (await agreesWithMembers(content, entries, zip))
  return zip
}

type DirectoryLocation = { start: number; bytes: number; count: number; commentBytes: number }

async function findDirectory(content: Content, tail: Buffer, endAt: number, tailStart: number, zip: ZipDirectory) {
  const count = tail.readUInt16LE(endAt + 10)
  const bytes = tail.readUInt32LE(endAt + 12)
  const start = tail.readUInt32LE(endAt + 16)
  const commentBytes = tail.readUInt16LE(endAt + 20)
  const locatorAt = endAt - locatorBytes
  const hasLocator = locatorAt >= 0 && tail.readUInt32LE(locatorAt) === signatures.locator
  if (!hasLocator) {
    if (count === all16 || bytes === all32 || start === all32) zip.zip64 = true
    return findValidLocation(content, { start, bytes, count, commentBytes }, tailStart + endAt)
  }
  zip.zip64 = true
  const end64At = Number(tail.readBigUInt64LE(locatorAt + 8))
  if (end64At > content.bytes - 56) return undefined
  const end64 = await readRange(content, end64At, end64At + 56)
  if (end64.length < 56 || end64.readUInt32LE(0) !== signatures.end64) return undefined
  const location = {
    start: Number(end64.readBigUInt64LE(48)),
    bytes: Number(end64.readBigUInt64LE(40)),
    count: Number(end64.readBigUInt64LE(32)),
    commentBytes,
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

function readEntries(directory: Buffer, zip: ZipDirectory): Entry[] | undefined {
  const entries: Entry[] = []
  let at = 0
  while (at < directory.length) {
    if (at + 46 > directory.length || directory.readUInt32LE(at) !== signatures.entry) return undefined
    if (entries.length === maxEntries) {
      zip.tooLarge = true
      return undefined
    }
    const flags = directory.readUInt16LE(at + 8)
    const method = directory.readUInt16LE(at + 10)
    const nameBytes = directory.readUInt16LE(at + 28)
    const extraBytes = directory.readUInt16LE(at + 30)
    const next = at + 46 + nameBytes + extraBytes + directory.readUInt16LE(at + 32)
    if (next > directory.length) return undefined
    const wide = readWide(directory.subarray(at + 46 + nameBytes, at + 46 + nameBytes + extraBytes), [
      directory.readUInt32LE(at + 24),
      directory.readUInt32LE(at + 20),
      directory.readUInt32LE(at + 42),
    ])
    if (wide.isWide) zip.zip64 = true
    recordMember(zip, flags, method)
    zip.largestBytes = Math.max(zip.largestBytes, wide.bytes)
    zip.totalBytes += wide.bytes
    entries.push({ flags, method, offset: wide.offset })
    at = next
  }
  return entries
}

/** Records the method and the encryption of a member: by either of two flags, or by the method that stands for AES. */
function recordMember(zip: ZipDirectory, flags: number, method: number) {
  if ((flags & 0x0041) !== 0 || (flags & 0x2000) !== 0 || method === 99) zip.encrypted = true
  zip.methods.add(method)
}

/** Reads the 64-bit field, which holds only the values that do not fit into 32 bits, in this order. */
function readWide(extra: Buffer, [size, packed, offset]: [number, number, number]) {
  const isWide = size === all32 || packed === all32 || offset === all32
  const narrow = { isWide, bytes: size, offset }
  if (!isWide) return narrow
  for (let at = 0; at + 4 <= extra.length; at += 4 + extra.readUInt16LE(at + 2)) {
    if (extra.readUInt16LE(at) !== 1) continue
    const field = extra.subarray(at + 4, at + 4 + extra.readUInt16LE(at + 2))
    const values = [size, packed, offset].map((value, index, narrow) => {
      const before = narrow.slice(0, index).filter((one) => one === all32).length
      return value === all32 && field.length >= before * 8 + 8 ? Number(field.readBigUInt64LE(before * 8)) : value
    })
    return { isWide, bytes: values[0] ?? size, offset: values[2] ?? offset }
  }
  return narrow
}

/**
 * Whether the header of each member agrees with the directory: ClamAV unpacks by the former, other programs by the
 * latter. Headers are read in the order of their offsets, so that no byte is read twice, however many members there
 * are.
 */
async function agreesWithMembers(content: Content, entries: Entry[], zip: ZipDirectory): Promise<boolean> {
  const pieceBytes = 65_536
  let piece: Buffer = content.whole ?? Buffer.alloc(0)
  let pieceStart = 0
  for (const { flags, method, offset } of entries.toSorted((a, b) => a.offset - b.offset)) {
    if (offset + localBytes > content.bytes) return false
    if (offset < pieceStart || offset + localBytes > pieceStart + piece.length) {
      pieceStart = offset
      piece = await readRange(content, offset, Math.min(content.bytes, offset + pieceBytes))
    }
    const local = piece.subarray(offset - pieceStart, offset - pieceStart + localBytes)
    if (local.length < localBytes || local.readUInt32LE(0) !== signatures.local) return false
    recordMember(zip, local.readUInt16LE(6), local.readUInt16LE(8))
    if (local.readUInt32LE(18) === all32 || local.readUInt32LE(22) === all32) zip.zip64 = true
    if (local.readUInt16LE(8) !== method || ((local.readUInt16LE(6) ^ flags) & 1) !== 0) return false
  }
  return true
}

async function readRange(content: Content, start: number, end: number): Promise<Buffer> {
  if (content.whole !== undefined) return content.whole.subarray(start, end)
  const pieces: Buffer[] = []
  for await (const piece of content.read(start, end)) pieces.push(piece)
  return pieces.length === 1 && pieces[0] !== undefined ? pieces[0] : Buffer.concat(pieces)
}
