/** A number of the head, least significant byte first; zero behind its end. */
const read = (head: Buffer, at: number, size: number) => (at + size <= head.length ? head.readUIntLE(at, size) : 0)

const minSectorBytes = 128
const maxSectorBytes = 4096
const maxTables = 8

/**
 * Whether a boot sector has the parameters of a FAT. The jump at its start, the name of the format and the mark at its
 * end do not count: Linux and mtools read disks without them, and Ataris write other jumps.
 */
export function hasFatParameters(head: Buffer): boolean {
  const sectorBytes = read(head, 11, 2)
  const isSectors =
    sectorBytes >= minSectorBytes && sectorBytes <= maxSectorBytes && (sectorBytes & (sectorBytes - 1)) === 0
  const [reserved, tables, media] = [read(head, 14, 2), head[16] ?? 0, head[21] ?? 0]
  const isTables = reserved > 0 && tables > 0 && tables <= maxTables && (media === 0xf0 || media >= 0xf8)
  const tableSectors = read(head, 22, 2) || read(head, 36, 4)
  const sectors = read(head, 19, 2) || read(head, 32, 4)
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
export function isOldFat(head: Buffer): boolean {
  const tableSectors = oldTableSectors.get(head[512] ?? 0)
  if (tableSectors === undefined || read(head, 513, 2) !== 0xffff || hasFatParameters(head)) return false
  const entry = head.subarray(512 * (1 + 2 * tableSectors)).subarray(0, entryBytes)
  const hasName = entry.subarray(0, 11).every((byte, n) => byte >= 0x20 || (n === 0 && byte === 0x05))
  const hasAttributes = ((entry[11] ?? 0) & unusedAttributes) === 0
  const isOnDisk = read(entry, 26, 2) < 4096 && read(entry, 28, 4) <= 2 ** 22
  return entry.length === entryBytes && hasName && hasAttributes && isOnDisk
}
