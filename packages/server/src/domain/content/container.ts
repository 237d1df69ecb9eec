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
  const start = atStart.get(head[0] ?? -1)
  return (start && findRow(start, head)) ?? findRow(furtherIn, head)
}

function findRow(rows: Row[], head: Buffer): ContainerFormat | undefined {
  return rows.find((row) => row.magics.some((magic) => holds(head, magic)) && (row.confirm?.(head) ?? true))
}

const holds = (head: Buffer, { at, bytes }: Magic) =>
  head.length >= at + bytes.length && head.compare(bytes, 0, bytes.length, at, at + bytes.length) === 0

const magic = (text: string, at = 0): Magic => ({ at, bytes: Buffer.from(text, 'latin1') })

/** A format that both ClamAV and 7-Zip open. */
const trusted = (name: string, unpackAs: string, ...magics: Magic[]): Row => {
  return { name, engineOpens: true, unpackAs, magics }
}
/** A format that only 7-Zip opens in all its forms. */
const ours = (name: string, unpackAs: string, ...magics: Magic[]): Row => {
  return { name, engineOpens: false, unpackAs, magics }
}
/** A format that neither ClamAV nor 7-Zip opens. */
const closed = (name: string, ...magics: Magic[]): Row => {
  return { name, engineOpens: false, unpackAs: undefined, magics }
}

function skippable(): Magic[] {
  return Array.from({ length: 16 }, (_, n) => ({ at: 0, bytes: Buffer.from([0x50 + n, 0x2a, 0x4d, 0x18]) }))
}

const rows: Row[] = [
  trusted('zip', 'zip', magic('PK\x03\x04'), magic('PK\x05\x06'), magic('PK\x07\x08PK'), magic('PK00PK')),
  ours('zip64', 'zip', magic('PK\x06\x06')),
  ours('7z', '7z', magic('7z\xbc\xaf\x27\x1c')),
  ours('rar', 'rar', magic('Rar!\x1a\x07\x00')),
  ours('rar5', 'rar5', magic('Rar!\x1a\x07\x01\x00')),
  trusted('gzip', 'gzip', magic('\x1f\x8b\x08')),
  { ...ours('bzip2', 'bzip2', magic('BZh')), confirm: isBzip2 },
  trusted('xz', 'xz', magic('\xfd7zXZ\x00')),
  // Parallel writers begin with a skippable frame, which has one of sixteen signatures.
  ours('zstd', 'zstd', magic('\x28\xb5\x2f\xfd'), ...skippable()),
  { ...ours('lzma', 'lzma', magic('\x5d\x00\x00')), confirm: isLzma },
  ours('compress', 'z', magic('\x1f\x9d')),
  ours('wim', 'wim', magic('MSWIM\x00\x00\x00')),
  trusted('cab', 'cab', magic('MSCF\x00\x00\x00\x00')),
  trusted('cpio', 'cpio', magic('070701'), magic('070702'), magic('070707'), magic('\xc7\x71'), magic('\x71\xc7')),
  ours('ar', 'ar', magic('!<arch>\n')),
  ours('rpm', 'rpm', magic('\xed\xab\xee\xdb')),
  { ...trusted('arj', 'arj', magic('\x60\xea')), confirm: isArj },
  trusted('xar', 'xar', magic('xar!')),
  trusted('chm', 'chm', magic('ITSF')),
  trusted('szdd', 'mslz', magic('SZDD\x88\xf0\x27\x33')),
  ours('squashfs', 'squashfs', magic('hsqs'), magic('sqsh'), magic('shsq'), magic('qshs')),
  ours('cramfs', 'cramfs', magic('\x45\x3d\xcd\x28'), magic('\x28\xcd\x3d\x45')),
  ours('vhd', 'vhd', magic('conectix')),
  ours('vhdx', 'vhdx', magic('vhdxfile')),
  ours('vmdk', 'vmdk', magic('KDMV')),
  ours('qcow2', 'qcow', magic('QFI\xfb\x00\x00\x00')),
  ours('ppmd', 'ppmd', magic('\x8f\xaf\xac\x84')),
  ours('android-sparse', 'sparse', magic('\x3a\xff\x26\xed\x01\x00')),
  closed('lz4', magic('\x04\x22\x4d\x18'), magic('\x02\x21\x4c\x18')),
  closed('lzip', magic('LZIP\x01'), magic('LZIP\x00')),
  closed('lzop', magic('\x89LZO\x00\r\n\x1a\n')),
  closed('lrzip', magic('LRZI\x00')),
  closed('snappy', magic('\xff\x06\x00\x00sNaPpY')),
  closed('zpaq', magic('7kSt'), magic('zPQ\x01'), magic('zPQ\x02')),
  closed('alz', magic('ALZ\x01')),
  closed('egg', magic('EGGA')),
  closed('freearc', magic('ArC\x01')),
  closed('stuffit', magic('SIT!\x00'), magic('StuffIt ')),
  { ...closed('encrypted-dmg', magic('encrcdsa')), encrypted: true },
  // ClamAV opens documents and installers in this format, unless a password protects them.
  trusted('ole', 'compound', magic('\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1')),
  trusted('tar', 'tar', magic('ustar', 257)),
  { ...trusted('lzh', 'lzh', magic('-lh', 2), magic('-lz', 2)), confirm: (head) => head[6] === 0x2d },
  closed('ace', magic('**ACE**', 7)),
  closed('zoo', magic('\xdc\xa7\xc4\xfd', 20)),
  ours('vdi', 'vdi', magic('\x7f\x10\xda\xbe', 64)),
  // Before `iso`: a disc may have both trees, with different files in them, and only 7-Zip is known to read UDF.
  { ...ours('udf', 'udf', ...[1, 2, 3, 4].map((sector) => magic('BEA01', 32_769 + 2048 * sector))), confirm: isUdf },
  ours('udf', 'udf', magic('BEA01', 32_769)),
  trusted('iso', 'iso', magic('CD001', 32_769)),
  { ...ours('ext', 'ext', magic('\x53\xef', 1080)), confirm: isExt },
  ours('apfs', 'apfs', magic('NXSB', 32)),
  ours('ntfs', 'ntfs', magic('NTFS    ', 3)),
  ours('fat', 'fat', magic('FAT12   ', 54), magic('FAT16   ', 54), magic('FAT32   ', 82)),
  ours('gpt', 'gpt', magic('EFI PART\x00\x00\x01\x00', 512)),
  { ...ours('mbr', 'mbr', magic('\x55\xaa', 510)), confirm: hasPartitions },
]

/** Formats by their first byte, so that most content is compared only with the few whose signature lies further in. */
const atStart = new Map<number, Row[]>()
const furtherIn: Row[] = []
for (const row of rows) {
  for (const one of row.magics) {
    const first = one.bytes[0] ?? 0
    if (one.at > 0) furtherIn.push({ ...row, magics: [one] })
    else atStart.set(first, [...(atStart.get(first) ?? []), { ...row, magics: [one] }])
  }
}

const blockMagics = [Buffer.from('314159265359', 'hex'), Buffer.from('177245385090', 'hex')]

/** `BZh` also begins words of text. In a bzip2 file, a level and the first block follow. */
function isBzip2(head: Buffer): boolean {
  const level = head[3] ?? 0
  return level >= 0x31 && level <= 0x39 && blockMagics.some((bytes) => holds(head, { at: 4, bytes }))
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
    table.some((one) => one[4] !== 0) &&
    table.every((one) => one[0] === 0 || one[0] === 0x80) &&
    table.every((one) => one[4] === 0 || (one.readUInt32LE(8) > 0 && one.readUInt32LE(12) > 0))
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
