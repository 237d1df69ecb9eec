import type { Doubt } from '../../../../domain/ports/engines.ts'
import type { Members, Range, Reader, Reading, Source } from '../reader.ts'

const sectorBytes = 2048
const firstDescriptor = 16
/** Discs have two to four descriptors. Programs look for their end within the first hundred sectors. */
const maxDescriptors = 84
const maxRecords = 200_000
const blockSizes = new Set([512, 1024, 2048])
const rootAt = 156
const directoryFlag = 2
const moreFlag = 0x80

/** A file of one directory tree. Its data are in several extents where a record cannot tell the length. */
type File = { path: string; extents: Range[] }
type Tree = { files: Map<string, File>; isSound: boolean }

/**
 * Reads ISO 9660 discs with several directory trees. 7-Zip reads one of them, other programs prefer another one: files
 * that are not in all trees are given here.
 */
export const isoReader: Reader = {
  name: 'ISO 9660 trees',
  recognizes: (source) => listDescriptors(source).length > 1,
  read: readTrees,
}

async function readTrees(source: Source, members: Members): Promise<Reading> {
  const doubts = new Set<Doubt>()
  const trees = listDescriptors(source).map((descriptor) => readTree(source, descriptor))
  if (trees.some(({ isSound }) => !isSound)) doubts.add('UnsupportedContainer')
  const files = new Map(trees.flatMap((tree) => [...tree.files]))
  for (const [key, { path, extents }] of files) {
    if (trees.every((tree) => tree.files.has(key))) continue
    await members.give({ path, pieces: readExtents(source, extents) })
  }
  return { accounted: [], doubts: [...doubts], needsSevenZip: true }
}

/** The primary and the supplementary descriptors; Joliet is one of the latter. */
function listDescriptors(source: Source): Buffer[] {
  const found: Buffer[] = []
  for (let sector = firstDescriptor; sector < firstDescriptor + maxDescriptors; sector++) {
    const descriptor = source.read(sector * sectorBytes, (sector + 1) * sectorBytes)
    if (descriptor.length < sectorBytes || descriptor.toString('latin1', 1, 6) !== 'CD001') break
    if (descriptor[0] === 255) break
    if (descriptor[0] === 1 || descriptor[0] === 2) found.push(descriptor)
  }
  return found
}

function readTree(source: Source, descriptor: Buffer): Tree {
  const tree: Tree = { files: new Map(), isSound: true }
  const isWide = isJoliet(descriptor)
  const blockBytes = descriptor.readUInt16LE(128)
  const root = readRecord(descriptor.subarray(rootAt), blockBytes)
  if (root === undefined || !blockSizes.has(blockBytes)) return { ...tree, isSound: false }
  const waiting = [{ range: root.range, path: '' }]
  const visited = new Set<string>()
  let records = 0
  for (let directory = waiting.pop(); directory !== undefined; directory = waiting.pop()) {
    // Records of `.` and `..` lead back, and so may others.
    const place = toKey([directory.range])
    if (visited.has(place)) continue
    visited.add(place)
    let extents: Range[] = []
    for (const bytes of listRecords(source, directory.range)) {
      const record = readRecord(bytes, blockBytes)
      if (++records > maxRecords) return { ...tree, isSound: false }
      if (record === undefined || isCut(source, record.range)) {
        tree.isSound = false
        continue
      }
      const path = `${directory.path}${decodeName(record.name, isWide)}`
      if ((record.flags & directoryFlag) !== 0) {
        waiting.push({ range: record.range, path: `${path}/` })
        continue
      }
      extents.push(record.range)
      if ((record.flags & moreFlag) !== 0) continue
      tree.files.set(toKey(extents), { path, extents })
      extents = []
    }
    if (extents.length > 0) tree.isSound = false
  }
  return tree
}

const toKey = (extents: Range[]) => extents.map(({ start, end }) => `${start}-${end}`).join()

/** Whether the content ends before the data. Files without data may be anywhere. */
const isCut = (source: Source, { start, end }: Range) => end > start && end > source.bytes

/** The records of a directory. Those that do not fit into a sector begin in the next one. */
function* listRecords(source: Source, { start, end }: Range): Generator<Buffer> {
  for (let at = start; at < Math.min(end, source.bytes); ) {
    const [length = 0] = source.read(at, at + 1)
    if (length === 0) at += sectorBytes - (at % sectorBytes)
    else {
      yield source.read(at, at + length)
      at += length
    }
  }
}

/** A record has each number twice, for readers of either byte order. Undefined where the two differ. */
function readRecord(bytes: Buffer, blockBytes: number) {
  const nameBytes = bytes[32] ?? 0
  if (bytes.length < 33 + nameBytes) return undefined
  const [block, length] = [bytes.readUInt32LE(2), bytes.readUInt32LE(10)]
  const isTwice = block === bytes.readUInt32BE(6) && length === bytes.readUInt32BE(14)
  // Data in units with gaps between them: most programs read the gaps, too.
  const isInterleaved = bytes[26] !== 0 || bytes[27] !== 0
  if (!isTwice || isInterleaved) return undefined
  // An attribute record stands before the data.
  const start = (block + (bytes[1] ?? 0)) * blockBytes
  return { range: { start, end: start + length }, flags: bytes[25] ?? 0, name: bytes.subarray(33, 33 + nameBytes) }
}

const isJoliet = (descriptor: Buffer) => /^%\/[@CE]/.test(descriptor.toString('latin1', 88, 91))

function decodeName(name: Buffer, isWide: boolean): string {
  const text =
    isWide && name.length % 2 === 0 ? Buffer.from(name).swap16().toString('utf16le') : name.toString('latin1')
  return text.replace(/;1$/, '')
}

function* readExtents(source: Source, extents: Range[]): Generator<Buffer> {
  for (const { start, end } of extents) yield* source.pieces(start, end)
}
