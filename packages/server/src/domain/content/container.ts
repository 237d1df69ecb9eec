import { type Doubt, maxUnpackedBytes } from '../ports/engines.ts'
import { isEncryptedInside, readZipDirectory } from './container-directories.ts'
import { findContainerFormat, listContainerFormats } from './container-formats.ts'
import { type Content, headBytes } from './content.ts'
import { isDocument } from './document-formats.ts'
import { isControl } from './encoded-text.ts'
import { isBinary } from './format-row.ts'
import { decodeLzma, lzmaHeadBytes } from './lzma-decoder.ts'

/**
 * Whether content with this head may hold other content, content that nobody can read without a password, or bytes that
 * ClamAV does not scan.
 */
export const canHoldContent = (head: Buffer): boolean =>
  findContainerFormat(head) !== undefined ||
  isEncrypted(head) ||
  isDocument(head) ||
  countSkippedBytes(head) !== undefined ||
  isZlibHead(head) ||
  isLzmaStream(head) ||
  findWideText(head) !== undefined

/** As `canHoldContent`. The answer is kept with the content, because every scan asks three times. */
export function mayHoldContent(content: Content): boolean {
  content.mayHold ??= canHoldContent(content.head)
  return content.mayHold
}

/**
 * Finds the doubts about content that are known before anything is unpacked. Returns undefined, without a promise, for
 * content that cannot hold other content as far as its head tells.
 */
export function findKnownDoubts(content: Content): Promise<Doubt[]> | undefined {
  if (!mayHoldContent(content)) return undefined
  return listKnownDoubts(content)
}

async function listKnownDoubts(content: Content): Promise<Doubt[]> {
  if (isEncrypted(content.head)) return ['EncryptedContent']
  const [format, ...others] = listContainerFormats(content.head)
  if (format === undefined) return []
  const doubts: Doubt[] = format.unpackAs === 'zip' ? await listZipDoubts(content) : []
  if (format.isEncrypted || (await isEncryptedInside(content, format.name))) doubts.push('EncryptedContent')
  else if ([format, ...others].some((each) => each.unpackAs === undefined && !each.hasReader))
    doubts.push('UnsupportedContainer')
  return doubts
}

async function listZipDoubts(content: Content): Promise<Doubt[]> {
  const zip = await readZipDirectory(content)
  const doubts: Doubt[] = []
  if (zip.encrypted) doubts.push('EncryptedContent')
  if (zip.tooLarge || zip.largestBytes > maxUnpackedBytes || zip.totalBytes > maxUnpackedBytes)
    doubts.push('ScanLimitExceeded')
  return doubts
}

/** Whether the head is that of a format whose content nobody can read without a password or a key. */
export function isEncrypted(head: Buffer): boolean {
  const marks = marksByFirstByte[head[0] ?? 0]
  return (marks?.some((mark) => hasMark(head, mark)) ?? false) || laterMarks.some((mark) => hasMark(head, mark))
}

type Mark = { at: number; bytes: Buffer; confirm?: (head: Buffer) => boolean }

const hasMark = (head: Buffer, { at, bytes, confirm }: Mark) =>
  head.length >= at + bytes.length &&
  head[at] === bytes[0] &&
  head[at + 1] === bytes[1] &&
  head.compare(bytes, 0, bytes.length, at, at + bytes.length) === 0 &&
  (confirm === undefined || confirm(head))

const mark = (text: string, at = 0): Mark => ({ at, bytes: Buffer.from(text, 'latin1') })

const encryptionMarks: Mark[] = [
  // openssl enc, as bytes and in base64.
  mark('Salted__'),
  mark('U2FsdGVkX1'),
  mark('age-encryption.org/v1\n'),
  mark('-----BEGIN AGE ENCRYPTED FILE-----'),
  mark('$ANSIBLE_VAULT;'),
  mark('LUKS\xba\xbe'),
  // The second header of LUKS 2, in an image whose first one is lost.
  mark('SKUL\xba\xbe', 0x4000),
  mark('SKUL\xba\xbe', 0x8000),
  // KeePass 1 and 2.
  mark('\x03\xd9\xa2\x9a\x65\xfb\x4b\xb5'),
  mark('\x03\xd9\xa2\x9a\x66\xfb\x4b\xb5'),
  mark('\x03\xd9\xa2\x9a\x67\xfb\x4b\xb5'),
  // AxCrypt.
  mark('\xc0\xb9\x07\x2e\x4f\x93\xf1\x46\xa0\x15\x79\x2c\xa1\xd9\xe8\x21'),
  // Apple Archive, encrypted.
  { ...mark('AEA1'), confirm: isBinary },
  mark('VimCrypt~'),
  mark('scrypt\x00'),
  { ...mark('ANDROID BACKUP\n'), confirm: isEncryptedBackup },
  { ...mark('AES'), confirm: isAesCrypt },
  { ...mark('\x60\xea'), confirm: isGarbledArj },
  // A disk of QEMU, which names its encryption.
  { ...mark('QFI\xfb\x00\x00\x00'), confirm: (head) => head.length > 36 && head.readUInt32BE(32) !== 0 },
  // BitLocker, and BitLocker To Go on FAT, which has the identifier of the volume instead.
  mark('-FVE-FS-', 3),
  { ...mark('MSWIN4.1', 3), confirm: hasBitLockerId },
]

const laterMarks = encryptionMarks.filter(({ at }) => at > 0)
/** Marks by their first byte, so that most content is compared only with the few whose mark lies further in. */
const marksByFirstByte: Record<number, Mark[]> = {}
for (const entry of encryptionMarks) {
  const first = entry.bytes[0] as number
  if (entry.at === 0) marksByFirstByte[first] = [...(marksByFirstByte[first] ?? []), entry]
}

/** AES Crypt has a version behind its letters, and from the second version on a zero and extensions with lengths. */
function isAesCrypt(head: Buffer): boolean {
  const version = head[3] ?? 255
  // The first version has the length of the last block instead of a zero.
  if (version === 0) return (head[4] ?? 255) < 16 && head.length > 64
  if (version > 3 || head[4] !== 0) return false
  if (version === 1) return head.length > 100
  const extension = head.readUInt16BE(Math.min(5, head.length - 2))
  return extension === 0 || head.subarray(7, 7 + extension).includes(0)
}

/** A backup of Android has its version, its compression and its encryption in the first lines. */
function isEncryptedBackup(head: Buffer): boolean {
  return /^ANDROID BACKUP\n\d+\n\d+\nAES/.test(head.toString('latin1', 0, 64))
}

const bitLockerId = Buffer.from('3bd66749292ed84a8399f6a339e3d001', 'hex')
function hasBitLockerId(head: Buffer): boolean {
  return head.subarray(424, 440).equals(bitLockerId)
}

const arjMark = 0xea60
const maxArjHeaders = 1000

/** Whether the header of an ARJ archive, or of a member in the head, says that its data is garbled with a password. */
function isGarbledArj(head: Buffer): boolean {
  let at = 0
  for (let count = 0; count < maxArjHeaders && at + 20 <= head.length; count++) {
    const bytes = head.readUInt16LE(at + 2)
    const type = head[at + 10]
    if (head.readUInt16LE(at) !== arjMark || bytes < 30 || bytes > 2600 || (count === 0) !== (type === 2)) return false
    if (((head[at + 8] as number) & 1) !== 0) return true
    const packedBytes = count === 0 ? 0 : head.readUInt32LE(at + 16)
    at += bytes + 10 + packedBytes
  }
  return false
}

/**
 * Formats that ClamAV takes for harmless by their first bytes and does not scan at all, as its built-in list of file
 * types says (CL_TYPE_IGNORED): RealMedia, MP3, Ogg, logs of SIP, data of another scanner, SQLite.
 */
const skippedHeads = [
  '.RMF',
  'ID3',
  'OggS',
  '\xff\xfb\x90',
  'SIP-HIT (SIP/H',
  'SYMC\x01\x00',
  'SQLite format 3\x00',
  '\x37\x7f\x06\x82\x00\x2d\xe2\x18',
  '\x37\x7f\x06\x83\x00\x2d\xe2\x18',
  '\xd9\xd5\x05\xf9\x20\xa1\x63\xd7',
].map((text) => Buffer.from(text, 'latin1'))

/** A picture of a PDF, which ClamAV skips when this stands within its first bytes. */
const skippedImage = Buffer.from(`/RGB\nID\n${'\xff'.repeat(24)}`, 'latin1')
const maxImageAt = 128

/**
 * The number of bytes without which ClamAV scans the content that begins with this head; undefined when it scans the
 * content as it is.
 */
export function countSkippedBytes(head: Buffer): number | undefined {
  const first = head[0]
  if (skippedHeads.some((mark) => mark[0] === first && head.subarray(0, mark.length).equals(mark))) return 1
  const imageAt = head.subarray(0, maxImageAt + skippedImage.length).indexOf(skippedImage)
  return imageAt === -1 ? undefined : imageAt + skippedImage.length
}

const maxLzmaProperties = 9 * 5 * 5
const unknownLzmaSize = 0xffff_ffff_ffff_ffffn
const maxLzmaSymbols = 20_000
const lzmaWindowBytes = 2 ** 17
/** Other content than LZMA ends in an impossible distance long before so many bytes that are not zero. */
const enoughDecodedBytes = 32
/** A stream that fills the content exactly needs fewer of them. */
const enoughDecodedBytesAlone = 8

/**
 * Whether content with this head is a `.lzma` file, which has no signature. The few heads that may be one are tried:
 * the first symbols must decode.
 */
export function isLzmaStream(head: Buffer): boolean {
  return hasLzmaHead(head) && canDecodeLzma(head)
}

/** Properties and a size, the zero before every stream, and a first symbol that is a literal. */
function hasLzmaHead(head: Buffer): boolean {
  if ((head[0] ?? 0xff) >= maxLzmaProperties || head.length < 18 || head[13] !== 0 || (head[14] ?? 0xff) >= 0x80)
    return false
  const size = head.readBigUInt64LE(5)
  return size === unknownLzmaSize || (size > 0n && size < 1n << 40n)
}

/** Tells streams by the bytes that decode. Zeros decode to zeros in every case, so they do not count. */
function canDecodeLzma(head: Buffer): boolean {
  let at = lzmaHeadBytes
  let counted = 0
  function nextByte(): number {
    const byte = head[at++]
    if (byte !== undefined && byte !== 0) counted++
    return byte ?? -1
  }
  const decoding = decodeLzma(head, { nextByte, maxWindowBytes: lzmaWindowBytes, maxSymbols: maxLzmaSymbols })
  let step = decoding.next()
  while (step.done !== true) step = decoding.next()
  if (step.value === 'damaged') return counted > 4 * enoughDecodedBytes
  const isWhole = head.length < headBytes && head.subarray(at).every((byte) => byte === 0)
  return counted >= (isWhole && step.value === 'complete' ? enoughDecodedBytesAlone : enoughDecodedBytes)
}

/**
 * Whether content with this head may be a zlib stream. The two bytes are no signature: text may begin with them, and
 * only a stream that decodes to its checksum is one.
 */
export function isZlibHead([method = 0, flags = 0]: Buffer): boolean {
  const isDeflate = (method & 0x0f) === 8 && method >> 4 <= 7
  const hasDictionary = (flags & 0x20) !== 0
  return isDeflate && !hasDictionary && (method * 256 + flags) % 31 === 0
}

/** Text whose characters have two or four bytes each. */
export type WideText = {
  /** The bytes of a character. */
  unit: 2 | 4
  isLittleEndian: boolean
  /** Where the text begins, behind its byte order mark if it has one. */
  start: number
}

const sampleChars = 64

/** Recognises UTF-16 and UTF-32 by a byte order mark, or UTF-16 by Latin letters, of which every second byte is zero. */
export function findWideText(head: Buffer): WideText | undefined {
  const found = findByteOrderMark(head) ?? findLatinText(head)
  return found !== undefined && isWideText(head, found) ? found : undefined
}

function findByteOrderMark(head: Buffer): WideText | undefined {
  const [a, b, c, d] = head
  if (a === 0xff && b === 0xfe) {
    return c === 0 && d === 0
      ? { unit: 4, isLittleEndian: true, start: 4 }
      : { unit: 2, isLittleEndian: true, start: 2 }
  }
  if (a === 0xfe && b === 0xff) return { unit: 2, isLittleEndian: false, start: 2 }
  return a === 0 && b === 0 && c === 0xfe && d === 0xff ? { unit: 4, isLittleEndian: false, start: 4 } : undefined
}

/** Without a mark, a few characters could be chance. */
const minLatinChars = 16

function findLatinText(head: Buffer): WideText | undefined {
  if (head.length < 2 * minLatinChars) return undefined
  const isLittleEndian = head[1] === 0
  if (!isLittleEndian && head[0] !== 0) return undefined
  const found: WideText = { unit: 2, isLittleEndian, start: 0 }
  for (let char = 0; char < minLatinChars; char++) if (readChar(head, 2 * char, found) > 0x7e) return undefined
  return found
}

function isWideText(head: Buffer, text: WideText): boolean {
  const end = Math.min(head.length, text.start + sampleChars * text.unit)
  for (let at = text.start; at + text.unit <= end; at += text.unit)
    if (isControl(readChar(head, at, text))) return false
  return text.start + text.unit <= end
}

/** Reads a character that is whole. */
export function readChar(bytes: Buffer, at: number, { unit, isLittleEndian }: WideText): number {
  if (unit === 2) return isLittleEndian ? bytes.readUInt16LE(at) : bytes.readUInt16BE(at)
  return isLittleEndian ? bytes.readUInt32LE(at) : bytes.readUInt32BE(at)
}
