import { gitFormats, hasOldTarHeader, oldArchives } from './archive-formats.ts'
import { diskFormats } from './disk-formats.ts'
import {
  type ContainerFormat,
  hasMagic,
  isBinary,
  type Magic,
  magic,
  openedBy7Zip,
  openedByNone,
  openedByReader,
  type Row,
} from './format-row.ts'

/** Recognises a format by the first bytes. */
export function findContainerFormat(head: Buffer): ContainerFormat | undefined {
  const start = rowsByFirstByte.get(head[0] ?? -1)
  const found = (start && findRow(start, head)) ?? findRow(rowsWithOffset, head)
  if (found !== undefined) return found
  if (hasOldTarHeader(head)) return oldTar
  return isUnusualLzma(head) ? lzma : undefined
}

/**
 * The format by the first bytes, and the other images of discs and file systems that begin in the same content:
 * programs read each of them, and each may hold other files.
 */
export function listContainerFormats(head: Buffer): ContainerFormat[] {
  const first = findContainerFormat(head)
  if (first === undefined) return []
  const others = diskFormats.filter((row) => row.isImage && row.name !== first.name && matches(row, head))
  return [first, ...new Map(others.map((row) => [row.name, row])).values()]
}

/** A row with one of its signatures, whose first byte and place are at hand. */
type RowOfMagic = { at: number; first: number; row: Row }

const matches = (row: Row, head: Buffer) =>
  row.magics.some((magic) => hasMagic(head, magic)) && (row.confirm?.(head) ?? true)

/** Looks at the first byte of a signature before anything else: each head is compared with some 60 of them. */
function findRow(rows: RowOfMagic[], head: Buffer): ContainerFormat | undefined {
  for (const { at, first, row } of rows) if (head[at] === first && matches(row, head)) return row
  return undefined
}

/** The first form of tar, which has no signature. */
const oldTar = openedByReader('tar', undefined)
const lzma = openedBy7Zip('lzma', 'lzma')

function skippable(): Magic[] {
  return Array.from({ length: 16 }, (_, n) => ({ at: 0, bytes: Buffer.from([0x50 + n, 0x2a, 0x4d, 0x18]) }))
}

/** Each version of zstd before 0.8 had a first byte of its own. */
function oldZstd(): Magic[] {
  return [0x1e, 0x22, 0x23, 0x24, 0x25, 0x26, 0x27].map((first) => ({
    at: 0,
    bytes: Buffer.from([first, 0xb5, 0x2f, 0xfd]),
  }))
}

const archives: Row[] = [
  openedByReader('zip', 'zip', magic('PK\x03\x04'), magic('PK\x05\x06'), magic('PK\x07\x08PK'), magic('PK00PK')),
  openedByReader('zip64', 'zip', magic('PK\x06\x06')),
  openedBy7Zip('7z', '7z', magic('7z\xbc\xaf\x27\x1c')),
  openedBy7Zip('rar', 'rar', magic('Rar!\x1a\x07\x00')),
  openedBy7Zip('rar5', 'rar5', magic('Rar!\x1a\x07\x01\x00')),
  // The second signature is that of gzip 0.5, whose files gzip still reads.
  openedByReader('gzip', undefined, magic('\x1f\x8b\x08'), magic('\x1f\x9e\x08')),
  { ...openedBy7Zip('bzip2', 'bzip2', magic('BZh')), confirm: isBzip2 },
  openedBy7Zip('xz', 'xz', magic('\xfd7zXZ\x00')),
  // Parallel writers begin with a skippable frame, which has one of sixteen signatures.
  openedBy7Zip('zstd', 'zstd', magic('\x28\xb5\x2f\xfd'), ...skippable()),
  { ...openedBy7Zip('lzma', 'lzma', magic('\x5d\x00\x00')), confirm: isLzma },
  // LZMA behind a byte that tells of a filter for programs.
  {
    ...openedBy7Zip('lzma86', 'lzma86', magic('\x00\x5d\x00\x00'), magic('\x01\x5d\x00\x00')),
    confirm: (head) => isLzma(head.subarray(1)),
  },
  openedBy7Zip('compress', 'z', magic('\x1f\x9d')),
  openedBy7Zip('wim', 'wim', magic('MSWIM\x00\x00\x00')),
  { ...openedBy7Zip('cab', 'cab', magic('MSCF')), confirm: isCab },
  openedBy7Zip('cpio', 'cpio', magic('070701'), magic('070702'), magic('070707'), magic('\xc7\x71'), magic('\x71\xc7')),
  openedBy7Zip('ar', 'ar', magic('!<arch>\n')),
  openedBy7Zip('rpm', 'rpm', magic('\xed\xab\xee\xdb')),
  { ...openedBy7Zip('arj', 'arj', magic('\x60\xea')), confirm: isArj },
  openedBy7Zip('xar', 'xar', magic('xar!')),
  openedBy7Zip('chm', 'chm', magic('ITSF')),
  openedBy7Zip('szdd', 'mslz', magic('SZDD\x88\xf0\x27\x33')),
  openedBy7Zip('hxs', 'hxs', magic('ITOLITLS')),
  { ...openedBy7Zip('intel-hex', 'ihex', magic(':')), confirm: isIntelHex },
  openedBy7Zip('ppmd', 'ppmd', magic('\x8f\xaf\xac\x84')),
  openedByNone('lz4', magic('\x04\x22\x4d\x18'), magic('\x02\x21\x4c\x18'), magic('\x03\x21\x4c\x18')),
  openedByNone('lizard', magic('\x06\x22\x4d\x18'), magic('\x05\x22\x4d\x18')),
  // Frames of versions before 0.8, of which zstd still reads the last ones.
  openedByNone('old-zstd', ...oldZstd()),
  openedByNone('compress-lzh', magic('\x1f\xa0')),
  openedByReader('pbzx', undefined, magic('pbzx\x00')),
  {
    ...openedByNone('apple-archive', ...['AA01', 'YAA1', 'pbze', 'pbz4', 'pbzz', 'pbzb'].map((text) => magic(text))),
    confirm: isBinary,
  },
  openedByNone('lzip', magic('LZIP\x01'), magic('LZIP\x00')),
  openedByNone('lzop', magic('\x89LZO\x00\r\n\x1a\n')),
  openedByNone('pipable-wim', magic('WLPWM\x00\x00\x00')),
  openedByNone('warc', magic('WARC/0.'), magic('WARC/1.')),
  { ...openedByNone('asar', magic('\x04\x00\x00\x00')), confirm: (head) => hasMagic(head, magic('{"files":', 16)) },
  openedByNone('android-ota', magic('CrAU\x00\x00\x00\x00')),
  openedByNone('flatpak', magic('flatpak\x00'), magic('xdg-app\x00')),
  openedByNone('zim', magic('ZIM\x04')),
  openedByNone('lrzip', magic('LRZI\x00')),
  openedByNone('snappy', magic('\xff\x06\x00\x00sNaPpY')),
  openedByNone('zpaq', magic('7kSt'), magic('zPQ\x01'), magic('zPQ\x02')),
  openedByNone('alz', magic('ALZ\x01')),
  openedByNone('egg', magic('EGGA')),
  openedByNone('freearc', magic('ArC\x01')),
  openedBy7Zip('nsis', 'nsis', magic('\xef\xbe\xad\xdeNullsoftInst', 4)),
  openedByNone('inno-setup', magic('rDlPtS\xcd\xe6\xd7\x7b\x0b\x2a')),
  { ...openedByNone('uharc', magic('UHA')), confirm: (head) => (head[3] ?? 255) < 16 },
  openedByNone('kwaj', magic('KWAJ\x88\xf0\x27\xd1'), magic('SZ \x88\xf0\x27\x33\xd1')),
  openedByNone('lzfse', magic('bvx2'), magic('bvx1'), magic('bvxn'), magic('bvx-')),
  openedByNone('installshield', magic('ISc('), magic('\x13\x5d\x65\x8c')),
  openedByNone('old-rar', magic('RE~^')),
  { ...openedByNone('pst', magic('!BDN')), confirm: (head) => hasMagic(head, magic('SM', 8)) },
  openedByNone('stuffit', magic('SIT!\x00'), magic('StuffIt (c)19')),
  { ...openedByNone('stuffit', magic('StuffIt')), confirm: isBinary },
  { ...openedByNone('encrypted-dmg', magic('encrcdsa')), isEncrypted: true },
  openedByNone('bzip3', magic('BZ3v1')),
  openedByNone('rzip', magic('RZIP\x02'), magic('RZIP\x01')),
  openedByNone('qpress', magic('qpress10')),
  openedByNone('mozilla-lz4', magic('mozLz40\x00'), magic('mozLz4a\x00')),
  openedByNone('mpq', magic('MPQ\x1a')),
  openedByNone('lzx', magic('LZX\x00')),
  { ...openedByNone('pack', magic('\x1f\x1e')), confirm: isPack },
  { ...openedByNone('arc', magic('\x1a')), confirm: isArc },
  {
    ...openedByNone('dar', magic('\x00\x00\x00\x7b')),
    confirm: (head) => 'NST'.includes(head.toString('latin1', 14, 15)),
  },
  // Files can be restored from the parity data of PAR2 alone where there is enough of it.
  openedByNone('par2', magic('PAR2\x00PKT')),
  openedByNone('android-backup', magic('ANDROID BACKUP\n')),
  openedByNone('dump', magic('xFSdump0'), magic('\x6c\xea\x00\x00', 24), magic('\x6b\xea\x00\x00', 24)),
  openedByReader('applesingle', undefined, magic('\x00\x05\x16\x00'), magic('\x00\x05\x16\x07')),
  { ...openedByReader('activemime', undefined, magic('ActiveMime')), confirm: isBinary },
  openedByReader('ole', 'compound', magic('\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1')),
  openedByReader('tnef', undefined, magic('\x78\x9f\x3e\x22')),
  { ...openedByReader('compressed-rtf', undefined, magic('LZFu', 8), magic('MELA', 8)), confirm: isBinary },
  openedByReader('tar', undefined, magic('ustar', 257)),
  { ...openedBy7Zip('lzh', 'lzh', magic('-lh', 2), magic('-lz', 2)), confirm: (head) => head[6] === 0x2d },
  { ...openedByNone('pmarc', magic('-pm', 2)), confirm: (head) => head[6] === 0x2d },
  openedByNone('ace', magic('**ACE**', 7)),
  openedByNone('zoo', magic('\xdc\xa7\xc4\xfd', 20)),
]

const rows = [...archives, ...gitFormats, ...diskFormats, oldArchives]

/** The names of all formats, for the table of docs/verdicts.md. */
export const containerFormatNames = [...new Set(rows.map((row) => row.name))]

/** Formats by their first byte, so that most content is compared only with the few whose signature lies further in. */
const rowsByFirstByte = new Map<number, RowOfMagic[]>()
const rowsWithOffset: RowOfMagic[] = []
for (const row of rows) {
  for (const magic of row.magics) {
    const first = magic.bytes[0] ?? 0
    const rowOfMagic = { at: magic.at, first, row: { ...row, magics: [magic] } }
    if (magic.at > 0) rowsWithOffset.push(rowOfMagic)
    else rowsByFirstByte.set(first, [...(rowsByFirstByte.get(first) ?? []), rowOfMagic])
  }
}

const blockMagics = [Buffer.from('314159265359', 'hex'), Buffer.from('177245385090', 'hex')]

/** `BZh` also begins words of text. In a bzip2 file, a level and the first block follow. */
function isBzip2(head: Buffer): boolean {
  const level = head[3] ?? 0
  return level >= 0x31 && level <= 0x39 && blockMagics.some((bytes) => hasMagic(head, { at: 4, bytes }))
}

/** LZMA has no signature: a common dictionary size, a plausible length and the zero before every stream identify it. */
function isLzma(head: Buffer): boolean {
  if (head.length < 18 || head[13] !== 0) return false
  const dictionary = head.readUInt32LE(1)
  const leading = dictionary >>> (31 - Math.clz32(dictionary) - 1)
  const isUsual = dictionary === 0xffffffff || (leading << (31 - Math.clz32(dictionary) - 1)) >>> 0 === dictionary
  const size = head.readBigUInt64LE(5)
  return isUsual && (size === 0xffffffffffffffffn || size < 1n << 40n)
}

/**
 * Streams of LZMA with other properties or another dictionary than programs choose by themselves. A size that is unknown
 * fills eight bytes with ones; a known one is believed with the usual properties alone.
 */
function isUnusualLzma(head: Buffer): boolean {
  const properties = head[0] ?? 0xff
  // The first symbol is a literal, so the first bit behind the zero is not set.
  if (properties >= 9 * 5 * 5 || head.length < 18 || head[13] !== 0 || (head[14] ?? 0xff) >= 0x80) return false
  const size = head.readBigUInt64LE(5)
  const isKnown = size > 0n && size < 1n << 40n
  return size === 0xffffffffffffffffn || (properties === 0x5d && isKnown && head.readUInt32LE(1) >= 4096)
}

/** A line of Intel HEX has the number of its bytes before them, and behind them what makes their sum zero. */
function isIntelHex(head: Buffer): boolean {
  const digits = /^:((?:[\da-f]{2}){5,260})\r?\n/i.exec(head.toString('latin1', 0, 524))?.[1] ?? ''
  const bytes = Buffer.from(digits, 'hex')
  return bytes.length === (bytes[0] ?? 0) + 5 && bytes.reduce((sum, byte) => sum + byte, 0) % 256 === 0
}

/** Programs ignore the four bytes behind the signature of a cabinet, which are zero, if it has folders and files. */
function isCab(head: Buffer): boolean {
  if (hasMagic(head, magic('\x00\x00\x00\x00', 4))) return true
  return head.length >= 36 && isBinary(head) && head.readUInt16LE(26) > 0 && head.readUInt16LE(28) > 0
}

/** The signature of ARJ has two bytes only, so the length of the header and the type of its main record are checked. */
function isArj(head: Buffer): boolean {
  if (head.length < 12) return false
  const bytes = head.readUInt16LE(2)
  return bytes >= 30 && bytes <= 2600 && head[10] === 2
}

/** The first bytes of pack, which gzip decodes, are two only: the length and the depth of the tree follow. */
function isPack(head: Buffer): boolean {
  const depth = head[6] ?? 0
  return head.length > 8 && head.readUInt32BE(2) < 2 ** 31 && depth > 0 && depth <= 24
}

/** ARC begins with one byte and a method: a name that is text up to its end, and plausible sizes, follow. */
function isArc(head: Buffer): boolean {
  const method = head[1] ?? 0
  const nameEnd = head.indexOf(0, 2)
  // Spark sets the highest bit of the method.
  if ((method & 0x7f) < 2 || (method & 0x7f) > 11 || nameEnd < 3 || nameEnd > 14 || head.length < 29) return false
  const isName = head.subarray(2, nameEnd).every((byte) => byte > 0x20 && byte < 0x7f)
  const packedBytes = head.readUInt32LE(15)
  return isName && packedBytes < 2 ** 31 && packedBytes <= head.readUInt32LE(25) + 1024
}
