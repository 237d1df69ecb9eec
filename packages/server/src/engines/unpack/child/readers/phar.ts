import { decompress } from '../inflate.ts'
import { cutSource, type Members, type Range, type Reader, type Reading, type Source } from '../reader.ts'

const stubEnd = Buffer.from('__HALT_COMPILER();')
/** PHP looks for the end of the program in the whole file. */
const maxStubBytes = 16 * 2 ** 20
const maxManifestBytes = 100 * 2 ** 20
const maxEntries = 100_000
const longestBreak = 8

type Entry = { path: string; packedBytes: number; flags: number }
type Manifest = { entries: Entry[]; dataAt: number }

/** Reads archives of PHP: files behind a program that loads them. Archives in the form of zip and tar are read as such. */
export const pharReader: Reader = {
  name: 'phar',
  recognizes: (source) => findManifest(source) !== undefined,
  read: readPhar,
}

async function readPhar(source: Source, members: Members): Promise<Reading> {
  const manifest = findManifest(source)
  if (manifest === undefined) return { accounted: [], doubts: [] }
  let at = manifest.dataAt
  let isBroken = false
  for (const entry of manifest.entries) {
    const range = { start: at, end: at + entry.packedBytes }
    at = range.end
    isBroken ||= at > source.bytes || !(await giveEntry(source, members, entry, range))
  }
  // A signature of at most some hundred bytes follows.
  return { accounted: [{ start: 0, end: at }], doubts: isBroken ? ['UnsupportedContainer'] : [] }
}

const compressed = 0x1000
const bzip2 = 0x2000

/** Gives one file; false when its bytes cannot be read whole. */
async function giveEntry(source: Source, members: Members, { path, flags }: Entry, range: Range): Promise<boolean> {
  const packed = cutSource(source, range.start, range.end)
  const isDeflated = (flags & compressed) !== 0
  // A bzip2 file is content of its own, which is opened like any other.
  const pieces = isDeflated
    ? decompress('deflate', packed.pieces(0, packed.bytes)).pieces
    : packed.pieces(0, packed.bytes)
  try {
    await members.give({ path: (flags & bzip2) === 0 ? path : `${path}.bz2`, pieces })
    return true
  } catch {
    return false
  }
}

/** Finds the list of files behind the program. Undefined when the content is no archive. */
function findManifest(source: Source): Manifest | undefined {
  const found = source.find(stubEnd, 0, maxStubBytes)
  if (found === -1) return undefined
  const start = found + stubEnd.length
  const behind = source.read(start, start + longestBreak).toString('latin1')
  const [ending = ''] = /^(?: ?\?>)?(?:\r\n|\n)?/.exec(behind) ?? []
  return readManifest(source, start + ending.length)
}

function readManifest(source: Source, start: number): Manifest | undefined {
  const length = source.read(start, start + 4)
  if (length.length < 4) return undefined
  const bytes = length.readUInt32LE(0)
  if (bytes < 18 || bytes > maxManifestBytes || start + 4 + bytes > source.bytes) return undefined
  const fields = openFields(source.read(start + 4, start + 4 + bytes))
  const count = fields.readNumber()
  fields.skip(2 + 4)
  fields.skip(fields.readNumber())
  fields.skip(fields.readNumber())
  if (count > maxEntries) return undefined
  const entries: Entry[] = []
  while (entries.length < count && !fields.isOver()) {
    const path = fields.readText(fields.readNumber())
    // The size of the file, the time, the packed size, and the checksum.
    fields.skip(8)
    const packedBytes = fields.readNumber()
    fields.skip(4)
    const flags = fields.readNumber()
    fields.skip(fields.readNumber())
    entries.push({ path, packedBytes, flags })
  }
  return fields.isOver() ? undefined : { entries, dataAt: start + 4 + bytes }
}

/** Reads numbers and texts one after the other. Behind the end everything is zero and empty. */
function openFields(bytes: Buffer) {
  let at = 0
  return {
    readNumber(): number {
      at += 4
      return at <= bytes.length ? bytes.readUInt32LE(at - 4) : 0
    },
    readText(length: number): string {
      at += length
      return bytes.toString('utf8', at - length, Math.min(at, bytes.length))
    },
    skip(length: number) {
      at += length
    },
    isOver: () => at > bytes.length,
  }
}
