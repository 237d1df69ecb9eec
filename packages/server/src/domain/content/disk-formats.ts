import { type Magic, magic, openedBy7Zip, openedByNone, openedByReader, type Row } from './format-row.ts'

/** An image of a file system or disc begins at the start; one content may be several of them at once. */
type DiskRow = Row & { isImage: boolean }

const image = (row: Row, confirm?: (head: Buffer) => boolean): DiskRow => ({
  ...row,
  isImage: true,
  ...(confirm && { confirm }),
})
const file = (row: Row, confirm?: (head: Buffer) => boolean): DiskRow => ({
  ...row,
  isImage: false,
  ...(confirm && { confirm }),
})

/** The bytes at which the superblock of several Unix file systems begins. */
const superblock = 1024
const at64k = 65_536
const rawSync = `\x00${'\xff'.repeat(10)}\x00`
const ufsMagicAt = 1372
/** Sizes of a sector, from 128 to 4096 bytes, as boot sectors have them. */
const fatSectorSizes = ['\x80\x00', '\x00\x01', '\x00\x02', '\x00\x04', '\x00\x08', '\x00\x10']

/** Versions of the file system of the Amiga. */
const amigaKinds = ['\x00', '\x01', '\x02', '\x03', '\x04', '\x05', '\x06', '\x07']

/** Images of disks, discs and file systems, and the files in which virtual machines keep disks. */
export const diskFormats: DiskRow[] = [
  file(openedBy7Zip('squashfs', 'squashfs', magic('hsqs'), magic('sqsh'), magic('shsq'), magic('qshs'))),
  file(openedBy7Zip('cramfs', 'cramfs', magic('\x45\x3d\xcd\x28'), magic('\x28\xcd\x3d\x45'))),
  file(openedBy7Zip('vhd', 'vhd', magic('conectix'))),
  file(openedBy7Zip('vhdx', 'vhdx', magic('vhdxfile'))),
  file(openedBy7Zip('vmdk', 'vmdk', magic('KDMV'))),
  file(openedBy7Zip('qcow2', 'qcow', magic('QFI\xfb\x00\x00\x00'))),
  file(openedBy7Zip('android-sparse', 'sparse', magic('\x3a\xff\x26\xed\x01\x00'))),
  file(openedBy7Zip('vdi', 'vdi', magic('\x7f\x10\xda\xbe', 64))),
  file(openedBy7Zip('android-super', 'lp', magic('gDla\x34\x00\x00\x00', 4096))),
  file(openedByNone('qed', magic('QED\x00'))),
  file(openedByNone('parallels', magic('WithoutFreeSpace'), magic('WithouFreSpacExt'))),
  // The text names the files that hold the disk; only one of them, or none, was sent.
  file(openedByNone('vmdk-descriptor', magic('# Disk DescriptorFile'))),
  file(openedByNone('vmdk-cowd', magic('COWD\x01\x00\x00\x00'))),
  file(openedByNone('sparse-image', magic('sprs\x00\x00\x00'))),
  file(openedByReader('zisofs', undefined, magic('\x37\xe4\x53\x96\xc9\xdb\xd6\x07'))),
  file(openedByNone('zisofs2', magic('\xef\x22\x55\xa1\xbc\x1b\x95\xa0'))),
  file(
    openedByNone(
      'compressed-disc',
      magic('DAA\x00\x00\x00\x00\x00'),
      magic('IsZ!'),
      magic('CISO'),
      magic('MComprHD'),
      ...['RVZ\x01', 'WIA\x01', 'WBFS\x00'].map((text) => magic(text)),
      ...['#V1.0', '#V2.0', '#V3.0'].map((version) => magic(`#!/bin/sh\n${version} Format`)),
    ),
  ),
  file(
    openedByNone(
      'disk-backup',
      magic('partclone-image'),
      magic('\x00ntfsclone-image'),
      magic('FsA0'),
      magic('AFF10\x0d\x0a\x00'),
      magic('EVF\x09\x0d\x0a\xff\x00'),
      magic('VMA\x00\x00\x00\x00\x01'),
    ),
  ),
  // Sectors with their error correction, as programs for burning discs store them.
  file(openedByNone('raw-disc', magic(rawSync))),
  file(openedByNone('bochs', magic('Bochs Virtual HD Image'))),
  file(openedByNone('uml-cow', magic('OOOM\x00\x00\x00'))),
  file(openedByNone('refs', magic('ReFS\x00\x00\x00\x00', 3))),
  file(openedByNone('romfs', magic('-rom1fs-'))),
  file(openedByNone('bfs', magic('\xce\xfa\xad\x1b'))),
  file(openedByNone('ubi', magic('UBI#\x01'), magic('\x31\x18\x10\x06'))),
  file(openedByNone('jffs2', magic('\x85\x19\x01\xe0'), magic('\x85\x19\x02\xe0'), magic('\x85\x19\x03\x20'))),
  image(openedByNone('amiga-disk', ...amigaKinds.map((kind) => magic(`DOS${kind}`)))),
  image(openedByNone('xfs', magic('XFSB')), (head) => isBlockSize(readBE(head, 4, 4))),
  image(openedBy7Zip('udf', 'udf', ...[1, 2, 3, 4].map((sector) => magic('BEA01', 32_769 + 2048 * sector))), isUdf),
  image(openedBy7Zip('udf', 'udf', magic('BEA01', 32_769))),
  image(openedBy7Zip('iso', 'iso', magic('CD001', 32_769))),
  image(openedBy7Zip('ext', 'ext', magic('\x53\xef', superblock + 56)), isExt),
  image(openedBy7Zip('apfs', 'apfs', magic('NXSB', 32))),
  image(openedBy7Zip('ntfs', 'ntfs', magic('NTFS    ', 3))),
  image(openedByNone('exfat', magic('EXFAT   ', 3))),
  image(openedBy7Zip('fat', 'fat', magic('FAT12   ', 54), magic('FAT16   ', 54), magic('FAT32   ', 82))),
  image(openedBy7Zip('fat', 'fat', ...fatSectorSizes.map((bytes) => magic(bytes, 11))), hasFatParameters),
  image(openedByNone('old-fat', magic('\xff\xff', 513)), isOldFat),
  image(openedBy7Zip('hfs-plus', 'hfs', magic('H+\x00\x04', superblock), magic('HX\x00\x05', superblock))),
  image(openedByNone('hfs', magic('BD', superblock)), isHfs),
  image(openedByNone('btrfs', magic('_BHRfS_M', at64k + 64))),
  image(openedByNone('f2fs', magic('\x10\x20\xf5\xf2', superblock))),
  image(openedByNone('erofs', magic('\xe2\xe1\xf5\xe0', superblock))),
  image(openedByNone('reiserfs', ...[8192, at64k].flatMap((at) => [magic('ReIsEr', at + 52), magic('ReIsEr4', at)]))),
  image(openedByNone('jfs', magic('JFS1', 32_768))),
  image(openedByNone('nilfs', magic('\x34\x34', superblock + 6)), isNilfs),
  image(openedByNone('ufs', ...ufsMagics('\x54\x19\x01\x00', 8192), ...ufsMagics('\x19\x01\x54\x19', at64k))),
  image(
    openedByNone(
      'minix',
      ...['\x7f\x13', '\x8f\x13', '\x68\x24', '\x78\x24'].map((two) => magic(two, superblock + 16)),
    ),
    isMinix,
  ),
  image(openedByNone('minix', magic('\x5a\x4d', superblock + 24)), isMinix3),
  image(openedByNone('zfs', magic('version\x00', 16_384 + 24)), (head) => head[16_384] === 1 && head[16_386] === 0),
  image(openedByNone('lvm', ...[0, 512, 1024, 1536].map((at) => magic('LABELONE', at)))),
  image(
    openedByNone(
      'linux-raid',
      magic('\xfc\x4e\x2b\xa9\x01\x00\x00\x00'),
      magic('\xfc\x4e\x2b\xa9\x01\x00\x00\x00', 4096),
    ),
  ),
  file(openedBy7Zip('gpt', 'gpt', magic('EFI PART\x00\x00\x01\x00', 512))),
  file(openedBy7Zip('apm', 'apm', magic('PM\x00\x00', 512)), (head) => head.toString('latin1', 0, 2) === 'ER'),
  file(openedBy7Zip('mbr', 'mbr', magic('\x55\xaa', 510)), hasPartitions),
]

/** The signature of UFS, in either order of bytes. */
function ufsMagics(bytes: string, at: number): Magic[] {
  return [bytes, [...bytes].reverse().join('')].map((text) => magic(text, at + ufsMagicAt))
}

/** A number of the head, most or least significant byte first; zero behind its end. */
const readBE = (head: Buffer, at: number, size: number) => (at + size <= head.length ? head.readUIntBE(at, size) : 0)
const readLE = (head: Buffer, at: number, size: number) => (at + size <= head.length ? head.readUIntLE(at, size) : 0)

const isPowerOfTwo = (value: number) => value > 0 && (value & (value - 1)) === 0
const isBlockSize = (value: number) => value >= 512 && value <= 65_536 && isPowerOfTwo(value)

function isUdf(head: Buffer): boolean {
  return head.subarray(32_768, at64k).includes('NSR0')
}

function isExt(head: Buffer): boolean {
  return head.length >= 2048 && head.readUInt32LE(superblock + 24) <= 6 && head.readUInt32LE(superblock + 4) > 0
}

/** The blocks of HFS are multiples of 512 bytes, and there are some. */
function isHfs(head: Buffer): boolean {
  const blockBytes = readBE(head, superblock + 20, 4)
  return (
    blockBytes > 0 &&
    blockBytes % 512 === 0 &&
    readBE(head, superblock + 18, 2) > 0 &&
    (head[superblock + 36] ?? 255) < 28
  )
}

function isNilfs(head: Buffer): boolean {
  const superblockBytes = readLE(head, superblock + 8, 2)
  return readLE(head, superblock, 4) === 2 && superblockBytes >= 128 && superblockBytes <= 1024
}

/** The signature has two bytes only: the counts, the size of zones and the state must be plausible. */
function isMinix(head: Buffer): boolean {
  const [inodes, inodeMap, zoneMap] = [
    readLE(head, superblock, 2),
    readLE(head, superblock + 4, 2),
    readLE(head, superblock + 6, 2),
  ]
  const hasMaps = inodeMap * 8192 >= inodes && inodeMap <= 8 && zoneMap > 0
  return (
    inodes > 0 && hasMaps && readLE(head, superblock + 10, 2) === 0 && [1, 2].includes(readLE(head, superblock + 18, 2))
  )
}

function isMinix3(head: Buffer): boolean {
  const isBlocks = isBlockSize(readLE(head, superblock + 28, 2)) && readLE(head, superblock + 12, 2) === 0
  return readLE(head, superblock, 4) > 0 && isBlocks && readLE(head, superblock + 20, 4) > 0
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

const minSectorBytes = 128
const maxSectorBytes = 4096
const maxTables = 8

/**
 * Whether a boot sector has the parameters of a FAT. The jump at its start, the name of the format and the mark at its
 * end do not count: Linux and mtools read disks without them, and Ataris write other jumps.
 */
function hasFatParameters(head: Buffer): boolean {
  const sectorBytes = readLE(head, 11, 2)
  const isSectors = sectorBytes >= minSectorBytes && sectorBytes <= maxSectorBytes && isPowerOfTwo(sectorBytes)
  const [reserved, tables, media] = [readLE(head, 14, 2), head[16] ?? 0, head[21] ?? 0]
  const isTables = reserved > 0 && tables > 0 && tables <= maxTables && (media === 0xf0 || media >= 0xf8)
  const tableSectors = readLE(head, 22, 2) || readLE(head, 36, 4)
  const sectors = readLE(head, 19, 2) || readLE(head, 32, 4)
  const hasClusters = head[13] !== 0 && tableSectors > 0 && sectors > reserved + tableSectors * tables
  return head.length >= 512 && isSectors && isTables && hasClusters
}

/** Sectors of one allocation table on disks without parameters, by the first byte of the table. */
const oldTableSectors = new Map([
  [0xf0, 9],
  [0xf9, 3],
  [0xfc, 2],
  [0xfd, 2],
  [0xfe, 1],
  [0xff, 1],
])
const entryBytes = 32
/** Bits of the attributes that no entry of a directory has. */
const unusedAttributes = 0xc0

/**
 * Whether content is a disk of DOS 1, which has no parameters: the first byte of the allocation table, behind the boot
 * sector, tells the form of the disk. White pictures have the same bytes, so the directory must begin with a file.
 */
function isOldFat(head: Buffer): boolean {
  const tableSectors = oldTableSectors.get(head[512] ?? 0)
  if (tableSectors === undefined || readLE(head, 513, 2) !== 0xffff || hasFatParameters(head)) return false
  const entry = head.subarray(512 * (1 + 2 * tableSectors)).subarray(0, entryBytes)
  const hasName = entry.subarray(0, 11).every((byte, n) => byte >= 0x20 || (n === 0 && byte === 0x05))
  const hasAttributes = ((entry[11] ?? 0) & unusedAttributes) === 0
  const isOnDisk = readLE(entry, 26, 2) < 4096 && readLE(entry, 28, 4) <= 2 ** 22
  return entry.length === entryBytes && hasName && hasAttributes && isOnDisk
}
