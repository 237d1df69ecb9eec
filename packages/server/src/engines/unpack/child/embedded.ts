import { crc32 } from 'node:zlib'
import { hasTarChecksum, tarBlockBytes } from '../../../domain/content/archive-formats.ts'
import { listContainerFormats } from '../../../domain/content/container-formats.ts'
import { headBytes } from '../../../domain/content/content.ts'
import type { Doubt } from '../../../domain/ports/engines.ts'
import {
  cpioEnd,
  isBinaryCpio,
  isLzh,
  isOddCab,
  isRar4,
  isRar5,
  isTextCpio,
  type ReadFrom,
} from './embedded-archives.ts'
import { cutSource, type Range, type Reading, type Source } from './reader.ts'

/** Containers that are opened in one content. Programs hold a few; a file with more is made to exhaust the scanner. */
const maxOpened = 256
/** Heads that are checked in one content. */
const maxChecked = 100_000
const checkedBytes = 4608
/** Compressed streams that begin by chance break after fewer bytes. Those are scanned all the same. */
const minStreamBytes = 1024

/** Reads the container that begins at the start of a source, and counts the bytes of the members that it gives. */
type ReadStart = (source: Source) => Promise<Reading & { givenBytes: number }>

/**
 * Searches content for containers that begin further in, or in some ranges, and reads each. Chance may place the
 * signature of a format anywhere: a container that does not open is a doubt only where its head leaves no room for
 * chance.
 */
export async function readEmbedded(
  source: Source,
  readStart: ReadStart,
  ranges: Range[] = [{ start: 1, end: source.bytes }],
): Promise<Reading> {
  const accounted: Range[] = []
  const doubts = new Set<Doubt>()
  let opened = 0
  for (const candidate of findCandidates(source, ranges, () => accounted.at(-1)?.end ?? 0)) {
    if (candidate === 'too many') {
      doubts.add('ScanLimitExceeded')
      break
    }
    const { start, format } = candidate
    if (opened++ === maxOpened) {
      doubts.add('ScanLimitExceeded')
      break
    }
    const reading = await readStart(cutSource(source, start))
    const isBroken = reading.doubts.includes('UnsupportedContainer')
    if (format.isStream === true && isBroken && reading.givenBytes < minStreamBytes) continue
    const isOpened = reading.accounted.length > 0
    if (isOpened || format.isCertain === true) for (const doubt of reading.doubts) doubts.add(doubt)
    if (!isOpened && format.isCertain === true && reading.doubts.length === 0) doubts.add('UnsupportedContainer')
    const end = Math.max(...reading.accounted.map((range) => range.end))
    if (isOpened) accounted.push({ start, end: start + end })
  }
  return { accounted, doubts: [...doubts] }
}

type Candidate = { start: number; format: EmbeddedFormat }

/** The places where a container seems to begin, in order. `getStart` tells from where on further ones count. */
function* findCandidates(source: Source, ranges: Range[], getStart: () => number): Generator<Candidate | 'too many'> {
  const formats = embeddedFormats.filter(({ needs }) => needs === undefined || source.find(needs, 0) !== -1)
  let checked = 0
  for (const { start: first, end } of ranges) {
    const searches = formats.map((format) => ({ format, at: findNext(source, format, { start: first, end }) }))
    for (; ; checked++) {
      const from = getStart()
      for (const search of searches) {
        if (search.at < from) search.at = findNext(source, search.format, { start: from, end })
      }
      const next = searches.reduce((first, search) => (search.at < first.at ? search : first))
      if (next.at === Infinity) break
      if (checked >= maxChecked) {
        yield 'too many'
        return
      }
      const { at: start, format } = next
      const read: ReadFrom = (from, until) => source.read(start + from, start + until)
      if (format.isPlausible?.(read(0, checkedBytes), read) !== false) yield { start, format }
      next.at = findNext(source, format, { start: start + 1, end })
    }
  }
}

/** The next start of the format in a range; Infinity when there is none. */
function findNext(source: Source, { pattern, patternAt = 0 }: EmbeddedFormat, { start, end }: Range): number {
  const range = { start: start + patternAt, end: Math.min(source.bytes, end + patternAt) }
  const found = Buffer.isBuffer(pattern)
    ? source.find(pattern, range.start, range.end)
    : findMatch(source, pattern, range)
  return found === -1 ? Infinity : found - patternAt
}

const pieceBytes = 2 ** 20

/** The position of the first match of a global expression that begins in a range, or -1. */
function findMatch(source: Source, expression: RegExp, { start, end }: Range): number {
  for (let at = start; at < end; at += pieceBytes) {
    const text = source.read(at, Math.min(end, at + pieceBytes) + longestMatch).toString('latin1')
    expression.lastIndex = 0
    const match = expression.exec(text)
    if (match !== null) return at + match.index < end ? at + match.index : -1
  }
  return -1
}

/** A container format that may begin anywhere in content: the bytes to search for, and a check of what stands there. */
type EmbeddedFormat = {
  name: string
  /** Bytes, or a global expression without fixed bytes, of which no match is longer than `longestMatch`. */
  pattern: Buffer | RegExp
  /** The distance from the start of the container to the pattern; 0 unless it is given. */
  patternAt?: number
  /**
   * Whether a container begins with this head, of at least 64 bytes where the content is long enough. Undefined where
   * the pattern is enough.
   */
  isPlausible?(head: Buffer, read: ReadFrom): boolean
  /**
   * The check leaves no room for chance, as a checksum does: a container that cannot be opened is a doubt, not a
   * coincidence.
   */
  isCertain?: boolean
  /** The format is a compressed stream, whose first bytes chance may form. One that breaks soon is no stream. */
  isStream?: boolean
  /** The format is searched only in content that has these bytes somewhere, because its pattern is short. */
  needs?: Buffer
}

const longestMatch = 64

const bytes = (text: string) => Buffer.from(text, 'latin1')

const zipMethods = new Set([0, 1, 6, 8, 9, 12, 14, 20, 93, 95, 96, 97, 98, 99])

function isZip(head: Buffer): boolean {
  if (head.length < 31) return false
  const nameBytes = head.readUInt16LE(26)
  const isVersion = (head[4] ?? 0) <= 63 && (head[5] ?? 0) <= 20
  // Programs that write zips contain the signature; a name with control characters follows it there.
  const hasName = nameBytes > 0 && nameBytes <= 4096 && head.subarray(30, 30 + nameBytes).every((byte) => byte >= 0x20)
  return isVersion && zipMethods.has(head.readUInt16LE(8)) && hasName
}

const is7z = (head: Buffer) => head.length >= 32 && crc32(head.subarray(12, 32)) === head.readUInt32LE(8)

function isGzip(head: Buffer): boolean {
  const [, , , flags = 255, , , , , extraFlags = 255, system = 254] = head
  return head.length >= 18 && (flags & 0xe0) === 0 && [0, 2, 4].includes(extraFlags) && (system <= 13 || system === 255)
}

const isBzip2 = (head: Buffer) => /^BZh[1-9]/.test(head.toString('latin1', 0, 4))
const isXz = (head: Buffer) => head.length >= 12 && crc32(head.subarray(6, 8)) === head.readUInt32LE(8)
/** The reserved bit of the frame header is zero, and a block follows that is not of the reserved type. */
const isZstd = (head: Buffer) => head.length >= 9 && ((head[4] ?? 8) & 8) === 0

function isCab(head: Buffer): boolean {
  if (head.length < 36) return false
  const isVersion = head[24] === 3 && head[25] === 1
  return isVersion && head.readUInt32LE(16) < head.readUInt32LE(8) && head.readUInt16LE(28) > 0
}

const isTar = (head: Buffer) => hasTarChecksum(head.subarray(0, tarBlockBytes))

/** The method, the sizes and the level of a header of LHA or PMarc. */
const lzhFields = /-(?:lh[0-9dx]|lz[45s]|pm[0-2s])-[\s\S]{13}[\0-\x03]/g

/** The end of a field, size, time and checksum of a tar header as programs write them, for files of up to 128 MB. */
const tarFields = /[\0 ]00[0-7]{9}[\0 ][0-7]{11}[\0 ][0-7]{6}(?:\0 | \0|[0-7]\0)/g
const tarFieldsAt = 123

const isAr = (head: Buffer) => head.length >= 68 && head.toString('latin1', 66, 68) === '`\n'

const isOle = (head: Buffer) =>
  head.length >= 64 && head.readUInt16LE(28) === 0xfffe && [9, 12].includes(head.readUInt16LE(30))

const isSquashfs = (head: Buffer) =>
  head.length >= 32 && head.readUInt16LE(28) === 4 && head.readUInt32LE(12) === 2 ** head.readUInt16LE(22)

/** Formats that 7-Zip finds at any place of a file. Their heads are those of the same formats at the start. */
const foundBySevenZip: [name: string, pattern: string, patternAt: number][] = [
  ['xar', 'xar!\x00\x1c\x00\x01', 0],
  ['rpm', '\xed\xab\xee\xdb', 0],
  ['chm', 'ITSF\x03\x00\x00\x00\x60\x00\x00\x00', 0],
  ['cramfs', 'Compressed ROMFS', 16],
  ['ext', '\x53\xef', 1080],
  ['fat', '\x55\xaa', 510],
  ['ntfs', 'NTFS    \x00', 3],
  ['hfs-plus', 'H+\x00\x04', 1024],
  ['hfs-plus', 'HX\x00\x05', 1024],
  ['apfs', 'NXSB', 32],
  ['gpt', 'EFI PART\x00\x00\x01\x00', 512],
  ['vdi', '\x7f\x10\xda\xbe\x01\x00\x01\x00', 64],
  ['vmdk', 'KDMV', 0],
  ['qcow2', 'QFI\xfb\x00\x00\x00', 0],
  ['vhdx', 'vhdxfile', 0],
]

/** Whether content that begins here is of this format. */
const isFormat = (name: string) => (_head: Buffer, read: ReadFrom) =>
  listContainerFormats(read(0, headBytes)).some((format) => format.name === name)

/** Formats in which something is hidden behind other content; others cannot be told from chance. */
const embeddedFormats: EmbeddedFormat[] = [
  { name: 'zip', pattern: bytes('PK\x03\x04'), isPlausible: isZip },
  { name: '7z', pattern: bytes('7z\xbc\xaf\x27\x1c'), isPlausible: is7z, isCertain: true },
  { name: 'rar', pattern: bytes('Rar!\x1a\x07\x00'), isPlausible: isRar4, isCertain: true },
  { name: 'rar5', pattern: bytes('Rar!\x1a\x07\x01\x00'), isPlausible: isRar5, isCertain: true },
  { name: 'gzip', pattern: bytes('\x1f\x8b\x08'), isPlausible: isGzip, isStream: true },
  { name: 'bzip2', pattern: bytes('1AY&SY'), patternAt: 4, isPlausible: isBzip2, isStream: true },
  { name: 'xz', pattern: bytes('\xfd7zXZ\x00'), isPlausible: isXz, isCertain: true },
  { name: 'zstd', pattern: bytes('\x28\xb5\x2f\xfd'), isPlausible: isZstd, isStream: true },
  { name: 'cab', pattern: bytes('MSCF\x00\x00\x00\x00'), isPlausible: isCab },
  { name: 'cab', pattern: bytes('MSCF'), isPlausible: isOddCab, isCertain: true },
  { name: 'lzh', pattern: lzhFields, patternAt: 2, isPlausible: isLzh, isCertain: true },
  { name: 'tar', pattern: bytes('ustar'), patternAt: 257, isPlausible: isTar, isCertain: true },
  // GNU tar and cpio find a header without a signature behind any bytes.
  { name: 'old tar', pattern: tarFields, patternAt: tarFieldsAt, isPlausible: isTar, isCertain: true },
  { name: 'ar', pattern: bytes('!<arch>\n'), isPlausible: isAr },
  { name: 'nsis', pattern: bytes('\xef\xbe\xad\xdeNullsoftInst'), patternAt: 4, isCertain: true },
  { name: 'inno-setup', pattern: bytes('rDlPtS\xcd\xe6\xd7\x7b\x0b\x2a'), isCertain: true },
  { name: 'ole', pattern: bytes('\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1'), isPlausible: isOle },
  { name: 'squashfs', pattern: bytes('hsqs'), isPlausible: isSquashfs },
  { name: 'iso', pattern: bytes('\x01CD001\x01'), patternAt: 32_768 },
  { name: 'wim', pattern: bytes('MSWIM\x00\x00\x00\xd0\x00\x00\x00') },
  { name: 'cpio', pattern: bytes('07070'), isPlausible: isTextCpio, isCertain: true },
  ...['\xc7\x71', '\x71\xc7'].map((mark) => ({
    name: 'cpio',
    pattern: bytes(mark),
    isPlausible: isBinaryCpio,
    needs: cpioEnd,
  })),
  ...foundBySevenZip.map(([name, text, patternAt]) => ({
    name,
    pattern: bytes(text),
    patternAt,
    isPlausible: isFormat(name),
  })),
]
