import { macBinaryBytes, readMacBinary } from '../../../../domain/content/apple-formats.ts'
import type { Doubt } from '../../../../domain/ports/engines.ts'
import type { Members, Range, Reader, Reading } from '../reader.ts'
import type { Source } from '../source.ts'

const magics = new Set([0x0005_1600, 0x0005_1607])
const headBytes = 26
const entryBytes = 12
/** The forks of a file. Other entries hold names, dates and icons. */
const forks: Record<number, string> = { 1: '[data fork]', 2: '[resource fork]' }
/** Names, comments, icons, dates, Finder information and attributes of one file system each. */
const lastDescribingEntry = 15

/** Reads AppleSingle and AppleDouble: gives the data fork, the resource fork and entries of unknown kinds. */
export const appleSingleReader: Reader = {
  name: 'AppleSingle',
  recognizes(source) {
    const head = source.read(0, headBytes)
    return head.length === headBytes && magics.has(head.readUInt32BE(0))
  },
  read: async (source, members) => readAppleSingle(source, members),
}

async function readAppleSingle(source: Source, members: Members): Promise<Reading> {
  const count = source.read(0, headBytes).readUInt16BE(24)
  const tableEnd = headBytes + count * entryBytes
  const accounted: Range[] = [{ start: 0, end: Math.min(source.bytes, tableEnd) }]
  const doubts = new Set<Doubt>(tableEnd > source.bytes ? ['UnsupportedContainer'] : [])
  const table = source.read(headBytes, tableEnd)
  const given = new Set<string>()
  for (let at = 0; at + entryBytes <= table.length; at += entryBytes) {
    const kind = table.readUInt32BE(at)
    const start = table.readUInt32BE(at + 4)
    const end = start + table.readUInt32BE(at + 8)
    if (end > source.bytes) doubts.add('UnsupportedContainer')
    if (start >= source.bytes || start === end || given.has(`${start} ${end}`)) continue
    given.add(`${start} ${end}`)
    accounted.push({ start, end: Math.min(end, source.bytes) })
    const fork = forks[kind]
    if (fork === undefined && kind <= lastDescribingEntry) continue
    await members.give({ path: fork ?? `[entry ${kind}]`, pieces: source.pieces(start, end) })
  }
  return { accounted, doubts: [...doubts] }
}

const toBlockEnd = (end: number) => Math.ceil(end / macBinaryBytes) * macBinaryBytes

/** Reads MacBinary: a header, the data fork and the resource fork, each filled up to 128 bytes. */
export const macBinaryReader: Reader = {
  name: 'MacBinary',
  recognizes: (source) => locateForks(source) !== undefined,
  async read(source, members) {
    const found = locateForks(source)
    if (found === undefined) return { accounted: [], doubts: [] }
    for (const { path, start, end } of found.forks) {
      if (start < end) await members.give({ path, pieces: source.pieces(start, end) })
    }
    const end = toBlockEnd(found.end)
    return {
      accounted: [{ start: 0, end: Math.min(source.bytes, end) }],
      doubts: found.end > source.bytes ? ['UnsupportedContainer'] : [],
    }
  },
}

function locateForks(source: Source) {
  const header = readMacBinary(source.read(0, macBinaryBytes))
  if (header === undefined) return undefined
  const dataAt = toBlockEnd(macBinaryBytes + header.extraBytes)
  const dataEnd = dataAt + header.dataBytes
  const resourceAt = toBlockEnd(dataEnd)
  const end = resourceAt + header.resourceBytes
  // Without a checksum, only forks that fill the content tell the format from others.
  const isFilled = end === source.bytes || toBlockEnd(end) === source.bytes
  if (!header.isCertain && (!isFilled || end === dataAt)) return undefined
  const forks = [
    { path: header.name, start: dataAt, end: dataEnd },
    { path: '[resource fork]', start: resourceAt, end },
  ]
  return { forks, end: header.resourceBytes === 0 ? dataEnd : end }
}
