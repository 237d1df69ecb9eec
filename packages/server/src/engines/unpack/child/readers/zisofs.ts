import { inflateSync } from 'node:zlib'
import type { Doubt } from '../../../../domain/ports/engines.ts'
import type { Reader } from '../reader.ts'
import type { Source } from '../source.ts'

const magic = Buffer.from('37e45396c9dbd607', 'hex')
const headBytes = 16
const pointerBytes = 4
/** Exponents of the block size that programs write. */
const blockBits = { least: 15, most: 17 }
const maxFileBytes = 2 ** 32

type Head = { fileBytes: number; tableAt: number; blockBytes: number }

/** Reads zisofs: files of a disc that the file system decompresses when they are read. */
export const zisofsReader: Reader = {
  name: 'zisofs',
  recognizes: (source) => source.read(0, magic.length).equals(magic),
  async read(source, members) {
    const head = readHead(source)
    const doubts = new Set<Doubt>()
    if (head === undefined) return { accounted: [], doubts: ['UnsupportedContainer'] }
    await members.give({ path: '', pieces: inflateBlocks(source, head, () => doubts.add('UnsupportedContainer')) })
    return { accounted: [{ start: 0, end: source.bytes }], doubts: [...doubts] }
  },
}

function readHead(source: Source): Head | undefined {
  const head = source.read(0, headBytes)
  if (head.length < headBytes) return undefined
  const bits = head[13] as number
  if (bits < blockBits.least || bits > blockBits.most) return undefined
  return { fileBytes: head.readUInt32LE(8), tableAt: pointerBytes * (head[12] as number), blockBytes: 2 ** bits }
}

/** Yields the blocks up to the first one that is damaged. */
function* inflateBlocks(source: Source, { fileBytes, tableAt, blockBytes }: Head, onDamage: () => void) {
  const count = Math.ceil(Math.min(fileBytes, maxFileBytes) / blockBytes)
  let dataEnd = tableAt + pointerBytes * (count + 1)
  for (let block = 0; block < count; block++) {
    const pointers = source.read(tableAt + pointerBytes * block, tableAt + pointerBytes * (block + 2))
    if (pointers.length < 2 * pointerBytes) return onDamage()
    const [start, end] = [pointers.readUInt32LE(0), pointers.readUInt32LE(pointerBytes)]
    // Data that no block has, or several have, is none that programs write.
    if (start !== dataEnd || end < start || end > source.bytes) return onDamage()
    const wantedBytes = Math.min(blockBytes, fileBytes - block * blockBytes)
    const bytes = inflate(source.read(start, end), wantedBytes)
    if (bytes === undefined) return onDamage()
    yield bytes
    dataEnd = end
  }
  if (dataEnd !== source.bytes) onDamage()
}

/** A block without bytes holds zeros. */
function inflate(bytes: Buffer, wantedBytes: number): Buffer | undefined {
  if (bytes.length === 0) return Buffer.alloc(wantedBytes)
  try {
    const inflated = inflateSync(bytes, { maxOutputLength: wantedBytes })
    return inflated.length === wantedBytes ? inflated : undefined
  } catch {
    return undefined
  }
}
