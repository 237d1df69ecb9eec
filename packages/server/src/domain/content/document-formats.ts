import { headBytes } from './content.ts'
import { findPacketData, findPacketKind, mayBePackets, type Read } from './openpgp.ts'

/**
 * Whether the head is that of a document or mail that may hold other files. A wrong yes costs time, a wrong no hides
 * content, so the checks are loose.
 */
export function isDocument(head: Buffer): boolean {
  return (
    isTextDocument(head) ||
    (head[0] === colon && binHexStart.test(head.toString('latin1', 0, firstBytes))) ||
    findCmsKind(head) !== undefined ||
    mayBePackets(head) ||
    isMailHead(head) ||
    readMacBinary(head) !== undefined ||
    isMixedPage(head) ||
    head.includes(pdfMark) ||
    hasPdfObject(head)
  )
}

const colon = 0x3a

/** A character of BinHex, as the source of an expression. A colon at the start of a line stands in front of the data. */
export const binHexChar = '[!-,\\-0-689@A-NP-VX-Z[`a-fh-mp-r]'

/** A file in BinHex that no sentence announces. */
const binHexStart = new RegExp(`^:${binHexChar}{32}`)

/** The header of a PDF. Programs find it behind other bytes too. */
export const pdfMark = Buffer.from('%PDF-')

const objectMark = Buffer.from(' obj')
const pdfObject = /(?:^|[\r\n])[ \t]*\d{1,10} \d{1,5} obj\b/

/** Whether an object of a PDF begins in a line of the head: many programs read a PDF whose header is damaged. */
export const hasPdfObject = (head: Buffer): boolean =>
  head.includes(objectMark) && pdfObject.test(head.toString('latin1'))

/** ClamAV tells web pages by the tags in their first kilobyte. */
const pageBytes = 1024
const firstBytes = 64

/**
 * Whether the content may be a web page with bytes behind it that no text has. ClamAV scans web pages as text alone, so
 * it does not search them for containers. The bytes behind the head of a long page are unknown.
 */
function isMixedPage(head: Buffer): boolean {
  const at = findTag(head)
  // Text has no control characters but those of lines and tabs.
  if (at === -1 || head.subarray(0, Math.min(at, firstBytes)).some((byte) => byte < 9)) return false
  return head.length >= headBytes || head.includes(0)
}

const tagStart = 0x3c

/** A comment, a directive of a script, or a tag: random bytes hold a `<` in front of a letter in four of five kilobytes. */
const tag = /<(?:![a-z[-]|%@|[a-z]{3}|[a-z][a-z0-9]*[\s/>])/i

/** The position of the first tag that ClamAV looks at, or -1. */
function findTag(head: Buffer): number {
  const start = head.subarray(0, pageBytes)
  return start.includes(tagStart) ? start.toString('latin1').search(tag) : -1
}

/** Whether ClamAV may take text with this head for a web page. */
export const isPage = (head: Buffer): boolean => findTag(head) !== -1

/** Compares only the starts that have the first byte of the content, so that most content costs one look-up. */
function isTextDocument(head: Buffer): boolean {
  const starts = startsByFirstByte[head[0] ?? 0]
  return (
    starts?.some((start) => head.compare(start, 0, start.length, 0, Math.min(start.length, head.length)) === 0) ?? false
  )
}

/** The starts of RTF, uuencode, yEnc and armour. */
const startsByFirstByte: Record<number, Buffer[]> = {}
for (const text of ['{\\rt', 'begin ', 'begin-', '=ybegin ', '-----BEGIN ']) {
  const start = Buffer.from(text)
  const first = start[0] as number
  startsByFirstByte[first] = [...(startsByFirstByte[first] ?? []), start]
}

/** Lengths in the header of a MacBinary file, which holds both forks of a file. */
export type MacBinary = {
  name: string
  dataBytes: number
  resourceBytes: number
  extraBytes: number
  isCertain: boolean
}

export const macBinaryBytes = 128

/**
 * Reads the header of MacBinary, which has no signature. Its later versions have a checksum; of the first one, the
 * length of the content must prove it.
 */
export function readMacBinary(head: Buffer): MacBinary | undefined {
  if (head.length < macBinaryBytes || head[0] !== 0 || head[74] !== 0 || head[82] !== 0) return undefined
  const nameBytes = head[1] ?? 0
  const name = head.subarray(2, 2 + nameBytes)
  if (nameBytes < 1 || nameBytes > 63 || name.some((byte) => byte < 0x20)) return undefined
  const isCertain = head.readUInt16BE(124) === toCrc16(head.subarray(0, 124))
  const isFirstVersion = head.subarray(101, 126).every((byte) => byte === 0)
  if (!isCertain && !isFirstVersion) return undefined
  return {
    name: name.toString('latin1'),
    dataBytes: head.readUInt32BE(83),
    resourceBytes: head.readUInt32BE(87),
    extraBytes: isCertain ? head.readUInt16BE(120) : 0,
    isCertain,
  }
}

/** CRC-16 with the polynomial 0x1021. */
function toCrc16(bytes: Buffer): number {
  let sum = 0
  for (const byte of bytes) {
    sum ^= byte << 8
    for (let bit = 0; bit < 8; bit++) sum = ((sum << 1) ^ ((sum & 0x8000) === 0 ? 0 : 0x1021)) & 0xffff
  }
  return sum
}

/** The position of the first header line: some programs skip a byte order mark and empty lines before it. */
export function skipMailStart(head: Buffer): number {
  let at = head[0] === 0xef && head[1] === 0xbb && head[2] === 0xbf ? 3 : 0
  while (at < head.length && (head[at] === 0x0a || head[at] === 0x0d || head[at] === 0x20)) at++
  if (head[at] === 0x3e && startsWithFrom(head, at + 1)) at++
  return at
}

/**
 * Whether the head is a mailbox, or a header of mail with a field of MIME. Text without such a field holds no other
 * content, except in an encoding that the text itself shows.
 */
export function isMailHead(head: Buffer): boolean {
  const start = skipMailStart(head)
  const isMailbox = startsWithFrom(head, start)
  return (isMailbox || hasHeaderField(head, start)) && hasMimeField(head, start, isMailbox)
}

/** Looks at the start of each line, up to the empty line behind the header unless the text is a mailbox. */
function hasMimeField(head: Buffer, start: number, isMailbox: boolean): boolean {
  let isLineStart = true
  for (let at = start; at < head.length; at++) {
    const byte = head[at] as number
    if (byte === lineFeed || byte === carriageReturn) {
      if (isLineStart && !isMailbox) return false
      if (byte === carriageReturn && head[at + 1] === lineFeed) at++
      isLineStart = true
    } else {
      // Both cases of the letter c.
      if (isLineStart && (byte | 0x20) === 0x63 && mimeField.test(head.toString('latin1', at, at + 40))) return true
      isLineStart = false
    }
  }
  return false
}

const lineFeed = 0x0a
const carriageReturn = 0x0d
const mimeField = /^content-(?:type|transfer-encoding|disposition)[ \t]*:/i

const startsWithFrom = (head: Buffer, at: number) =>
  head[at] === 0x46 && head[at + 1] === 0x72 && head[at + 2] === 0x6f && head[at + 3] === 0x6d && head[at + 4] === 0x20

const maxFieldNameBytes = 76

/** Whether a line of the form `Name: value` begins at the position. */
function hasHeaderField(head: Buffer, start: number): boolean {
  const end = Math.min(head.length, start + maxFieldNameBytes)
  for (let at = start; at < end; at++) {
    const byte = head[at] as number
    if (byte === colon) return at > start
    if (byte <= 0x20 || byte > 0x7e) return (byte === 0x20 || byte === 0x09) && at > start && head[at + 1] === colon
  }
  return false
}

export type CmsKind = 'content' | 'encrypted' | 'keystore'

/** The encoded object identifiers of the types of CMS and PKCS #7, without their last number. */
const rsaData = Buffer.from('2a864886f70d0107', 'hex')
const smime = Buffer.from('2a864886f70d01091001', 'hex')
/** Chinese standards have identifiers of their own for the same structures. */
const sm2 = Buffer.from('2a811ccf5506010402', 'hex')

const kindsOfRsaData: Record<number, CmsKind> = {
  1: 'content',
  2: 'content',
  3: 'encrypted',
  4: 'encrypted',
  5: 'content',
  6: 'encrypted',
}
/** AuthenticatedData, CompressedData, AuthEnvelopedData and TimestampedData. */
const kindsOfSmime: Record<number, CmsKind> = { 2: 'content', 9: 'content', 23: 'encrypted', 31: 'content' }

export const isCompressedType = (name: Buffer) => name.equals(compressedName)
export const isDataType = (name: Buffer) => name.equals(dataName)

const compressedName = Buffer.concat([smime, Buffer.from([9])])
const dataName = Buffer.concat([rsaData, Buffer.from([1])])

/** How content of the type with this encoded name is read; undefined for other types. */
export function findTypeKind(name: Buffer): CmsKind | undefined {
  const last = name[name.length - 1] ?? 0
  const start = name.subarray(0, -1)
  if (start.equals(rsaData) || start.equals(sm2)) return kindsOfRsaData[last]
  return start.equals(smime) ? kindsOfSmime[last] : undefined
}

/** The position of the content of a value, or undefined when its length is none. */
function skipLength(bytes: Buffer, at: number): number | undefined {
  const first = bytes[at]
  if (first === undefined || first > 0x88) return undefined
  return at + 1 + (first & 0x80 ? first & 0x7f : 0)
}

/** Recognises CMS (PKCS #7) and keystores (PKCS #12) by their first values. */
export function findCmsKind(head: Buffer): CmsKind | undefined {
  if (head[0] !== 0x30) return undefined
  const at = skipLength(head, 1)
  if (at === undefined) return undefined
  // A keystore begins with its version, which is 3, and a structure of CMS.
  if (head[at] === 0x02 && head[at + 1] === 1 && head[at + 2] === 3) {
    if (head[at + 3] !== 0x30) return undefined
    const inner = skipLength(head, at + 4)
    return inner !== undefined && readTypeKind(head, inner) !== undefined ? 'keystore' : undefined
  }
  return readTypeKind(head, at)
}

function readTypeKind(head: Buffer, at: number): CmsKind | undefined {
  const length = head[at + 1] ?? 0
  if (head[at] !== 0x06 || length < 9 || length > 11) return undefined
  return findTypeKind(head.subarray(at + 2, at + 2 + length))
}

/** Whether bytes are a key, a certificate or a detached signature, which hold no other content. */
export function isOrdinaryKey(bytes: Buffer): boolean {
  if (bytes.toString('latin1', 0, opensshMark.length) === opensshMark) return true
  const read: Read = (start, end) => bytes.subarray(start, end)
  if (findPacketKind(read, bytes.length) === 'keys') return findPacketData(read, bytes.length) === undefined
  return isWholeValue(bytes) && findCmsKind(bytes) === undefined
}

const opensshMark = 'openssh-key-v1\0'

/** Whether bytes are one value of ASN.1, a sequence or a name, that ends where they do. */
function isWholeValue(bytes: Buffer): boolean {
  const first = bytes[1] ?? 0
  if (bytes[0] !== 0x30 && bytes[0] !== 0x06) return false
  const lengthBytes = first < 0x80 ? 0 : first & 0x7f
  if (lengthBytes > 4 || bytes.length < 2 + lengthBytes) return false
  const length = lengthBytes === 0 ? first : bytes.readUIntBE(2, lengthBytes)
  return 2 + lengthBytes + length === bytes.length
}
