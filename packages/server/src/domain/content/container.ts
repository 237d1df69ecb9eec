import { type Doubt, maxUnpackedBytes } from '../ports/engines.ts'
import { isEncryptedInside, readZipDirectory } from './container-directories.ts'
import type { Content } from './content.ts'
import { findMediaType } from './media-type.ts'

export type Container = {
  format: string
  /** ClamAV scans every member. Otherwise Assay must unpack the container, or there is a doubt. */
  engineOpens: boolean
  unpackable: boolean
  /** The doubts that are known before anything is unpacked. */
  doubts: Doubt[]
}

/**
 * Zip methods that ClamAV unpacks: stored, imploded, deflated (both) and bzip2. It does not unpack LZMA, xz and PPMd.
 */
const engineMethods = new Set([0, 6, 8, 9, 12])

/** Finds out how a container can be scanned. Returns undefined, without a promise, for content that is none. */
export function findContainer(content: Content): Promise<Container> | undefined {
  const format = findContainerFormat(content.head)
  return format && inspectContainer(content, format)
}

async function inspectContainer(content: Content, format: ContainerFormat): Promise<Container> {
  const { name, engineOpens, unpackAs } = format
  const container: Container = { format: name, engineOpens, unpackable: unpackAs !== undefined, doubts: [] }
  if (unpackAs === 'zip') await inspectZip(content, container)
  if (format.encrypted === true || (await isEncryptedInside(content, name))) container.doubts.push('EncryptedContent')
  else if (!engineOpens && unpackAs === undefined) container.doubts.push('UnsupportedContainer')
  return container
}

async function inspectZip(content: Content, container: Container) {
  const zip = await readZipDirectory(content)
  const isReadable = [...zip.methods].every((method) => engineMethods.has(method))
  container.engineOpens = zip.sound && !zip.zip64 && isReadable
  if (zip.encrypted) container.doubts.push('EncryptedContent')
  if (zip.tooLarge || zip.largestBytes > maxUnpackedBytes || zip.totalBytes > maxUnpackedBytes)
    container.doubts.push('ScanLimitExceeded')
}

/** A container format, recognised by the first bytes. */
export type ContainerFormat = {
  name: string
  /**
   * ClamAV 1.4 opens all forms of the format: in a sample it found a member that it knows by its hash alone. It opens
   * only some forms of others, which do not count: it answers OK for a 7z with BZip2, Deflate, Delta or ARM64, and
   * reads only the first stream of a bzip2 file, while pbzip2 begins a new one every 900 kB.
   */
  engineOpens: boolean
  /** The name of the format in 7-Zip; undefined when 7-Zip cannot open it. */
  unpackAs: string | undefined
  /** All content of the format is encrypted. */
  encrypted?: boolean
}

type Magic = { at: number; bytes: Buffer }
type Row = ContainerFormat & { magics: Magic[]; confirm?: (head: Buffer) => boolean }

/** Recognises a format by the first bytes. */
export function findContainerFormat(head: Buffer): ContainerFormat | undefined {
  const start = rowsByFirstByte.get(head[0] ?? -1)
  return (start && findRow(start, head)) ?? findRow(rowsWithOffset, head)
}

function findRow(rows: Row[], head: Buffer): ContainerFormat | undefined {
  return rows.find((row) => row.magics.some((magic) => hasMagic(head, magic)) && (row.confirm?.(head) ?? true))
}

const hasMagic = (head: Buffer, { at, bytes }: Magic) =>
  head.length >= at + bytes.length && head.compare(bytes, 0, bytes.length, at, at + bytes.length) === 0

const magic = (text: string, at = 0): Magic => ({ at, bytes: Buffer.from(text, 'latin1') })

/** A format that both ClamAV and 7-Zip open. */
const openedByBoth = (name: string, unpackAs: string, ...magics: Magic[]): Row => {
  return { name, engineOpens: true, unpackAs, magics }
}
/** A format that only 7-Zip opens in all its forms. */
const openedBy7Zip = (name: string, unpackAs: string, ...magics: Magic[]): Row => {
  return { name, engineOpens: false, unpackAs, magics }
}
/** A format that neither ClamAV nor 7-Zip opens. */
const openedByNone = (name: string, ...magics: Magic[]): Row => {
  return { name, engineOpens: false, unpackAs: undefined, magics }
}

function skippable(): Magic[] {
  return Array.from({ length: 16 }, (_, n) => ({ at: 0, bytes: Buffer.from([0x50 + n, 0x2a, 0x4d, 0x18]) }))
}

const rows: Row[] = [
  openedByBoth('zip', 'zip', magic('PK\x03\x04'), magic('PK\x05\x06'), magic('PK\x07\x08PK'), magic('PK00PK')),
  openedBy7Zip('zip64', 'zip', magic('PK\x06\x06')),
  openedBy7Zip('7z', '7z', magic('7z\xbc\xaf\x27\x1c')),
  openedBy7Zip('rar', 'rar', magic('Rar!\x1a\x07\x00')),
  openedBy7Zip('rar5', 'rar5', magic('Rar!\x1a\x07\x01\x00')),
  openedByBoth('gzip', 'gzip', magic('\x1f\x8b\x08')),
  { ...openedBy7Zip('bzip2', 'bzip2', magic('BZh')), confirm: isBzip2 },
  openedByBoth('xz', 'xz', magic('\xfd7zXZ\x00')),
  // Parallel writers begin with a skippable frame, which has one of sixteen signatures.
  openedBy7Zip('zstd', 'zstd', magic('\x28\xb5\x2f\xfd'), ...skippable()),
  { ...openedBy7Zip('lzma', 'lzma', magic('\x5d\x00\x00')), confirm: isLzma },
  openedBy7Zip('compress', 'z', magic('\x1f\x9d')),
  openedBy7Zip('wim', 'wim', magic('MSWIM\x00\x00\x00')),
  openedByBoth('cab', 'cab', magic('MSCF\x00\x00\x00\x00')),
  openedByBoth('cpio', 'cpio', magic('070701'), magic('070702'), magic('070707'), magic('\xc7\x71'), magic('\x71\xc7')),
  openedBy7Zip('ar', 'ar', magic('!<arch>\n')),
  openedBy7Zip('rpm', 'rpm', magic('\xed\xab\xee\xdb')),
  { ...openedByBoth('arj', 'arj', magic('\x60\xea')), confirm: isArj },
  openedByBoth('xar', 'xar', magic('xar!')),
  openedByBoth('chm', 'chm', magic('ITSF')),
  openedByBoth('szdd', 'mslz', magic('SZDD\x88\xf0\x27\x33')),
  openedBy7Zip('squashfs', 'squashfs', magic('hsqs'), magic('sqsh'), magic('shsq'), magic('qshs')),
  openedBy7Zip('cramfs', 'cramfs', magic('\x45\x3d\xcd\x28'), magic('\x28\xcd\x3d\x45')),
  openedBy7Zip('vhd', 'vhd', magic('conectix')),
  openedBy7Zip('vhdx', 'vhdx', magic('vhdxfile')),
  openedBy7Zip('vmdk', 'vmdk', magic('KDMV')),
  openedBy7Zip('qcow2', 'qcow', magic('QFI\xfb\x00\x00\x00')),
  openedBy7Zip('ppmd', 'ppmd', magic('\x8f\xaf\xac\x84')),
  openedBy7Zip('android-sparse', 'sparse', magic('\x3a\xff\x26\xed\x01\x00')),
  openedByNone('lz4', magic('\x04\x22\x4d\x18'), magic('\x02\x21\x4c\x18')),
  openedByNone('lzip', magic('LZIP\x01'), magic('LZIP\x00')),
  openedByNone('lzop', magic('\x89LZO\x00\r\n\x1a\n')),
  openedByNone('lrzip', magic('LRZI\x00')),
  openedByNone('snappy', magic('\xff\x06\x00\x00sNaPpY')),
  openedByNone('zpaq', magic('7kSt'), magic('zPQ\x01'), magic('zPQ\x02')),
  openedByNone('alz', magic('ALZ\x01')),
  openedByNone('egg', magic('EGGA')),
  openedByNone('freearc', magic('ArC\x01')),
  openedByNone('stuffit', magic('SIT!\x00'), magic('StuffIt ')),
  { ...openedByNone('encrypted-dmg', magic('encrcdsa')), encrypted: true },
  // ClamAV opens documents and installers in this format, unless a password protects them.
  openedByBoth('ole', 'compound', magic('\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1')),
  openedByBoth('tar', 'tar', magic('ustar', 257)),
  { ...openedByBoth('lzh', 'lzh', magic('-lh', 2), magic('-lz', 2)), confirm: (head) => head[6] === 0x2d },
  openedByNone('ace', magic('**ACE**', 7)),
  openedByNone('zoo', magic('\xdc\xa7\xc4\xfd', 20)),
  openedBy7Zip('vdi', 'vdi', magic('\x7f\x10\xda\xbe', 64)),
  // Before `iso`: a disc may have both trees, with different files in them, and only 7-Zip is known to read UDF.
  {
    ...openedBy7Zip('udf', 'udf', ...[1, 2, 3, 4].map((sector) => magic('BEA01', 32_769 + 2048 * sector))),
    confirm: isUdf,
  },
  openedBy7Zip('udf', 'udf', magic('BEA01', 32_769)),
  openedByBoth('iso', 'iso', magic('CD001', 32_769)),
  { ...openedBy7Zip('ext', 'ext', magic('\x53\xef', 1080)), confirm: isExt },
  openedBy7Zip('apfs', 'apfs', magic('NXSB', 32)),
  openedBy7Zip('ntfs', 'ntfs', magic('NTFS    ', 3)),
  openedBy7Zip('fat', 'fat', magic('FAT12   ', 54), magic('FAT16   ', 54), magic('FAT32   ', 82)),
  openedBy7Zip('gpt', 'gpt', magic('EFI PART\x00\x00\x01\x00', 512)),
  { ...openedBy7Zip('mbr', 'mbr', magic('\x55\xaa', 510)), confirm: hasPartitions },
]

/** Formats by their first byte, so that most content is compared only with the few whose signature lies further in. */
const rowsByFirstByte = new Map<number, Row[]>()
const rowsWithOffset: Row[] = []
for (const row of rows) {
  for (const magic of row.magics) {
    const first = magic.bytes[0] ?? 0
    if (magic.at > 0) rowsWithOffset.push({ ...row, magics: [magic] })
    else rowsByFirstByte.set(first, [...(rowsByFirstByte.get(first) ?? []), { ...row, magics: [magic] }])
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

/** The signature of ARJ has two bytes only, so the length of the header and the type of its main record are checked. */
function isArj(head: Buffer): boolean {
  if (head.length < 12) return false
  const bytes = head.readUInt16LE(2)
  return bytes >= 30 && bytes <= 2600 && head[10] === 2
}

function isUdf(head: Buffer): boolean {
  return head.subarray(32_768, 65_536).includes('NSR0')
}

function isExt(head: Buffer): boolean {
  return head.length >= 2048 && head.readUInt32LE(1024 + 24) <= 6 && head.readUInt32LE(1024 + 4) > 0
}

/** A boot sector has a table of four partitions: each is empty, or has a type, a valid status and a position. */
function hasPartitions(head: Buffer): boolean {
  const table = [446, 462, 478, 494].map((at) => head.subarray(at, at + 16))
  return (
    table.some((partition) => partition[4] !== 0) &&
    table.every((partition) => partition[0] === 0 || partition[0] === 0x80) &&
    table.every((partition) => partition[4] === 0 || (partition.readUInt32LE(8) > 0 && partition.readUInt32LE(12) > 0))
  )
}

const compoundTypes = new Set(['message/rfc822', 'application/mbox', 'application/pdf', 'text/rtf', 'application/rtf'])
const oleMagic = Buffer.from('d0cf11e0a1b11ae1', 'hex')

/** Whether content is a document or mail that may contain other files, which ClamAV opens but the unpacker does not. */
export async function isCompound({ head, bytes }: Content): Promise<boolean> {
  if (head.subarray(0, oleMagic.length).equals(oleMagic)) return true
  const type = await findMediaType(head, bytes)
  return compoundTypes.has(type.split(';')[0] ?? '')
}
