import type { Source } from '../reader.ts'

/** A stream of a compound file. */
export type OleStream = { name: string; bytes: number; isWhole: boolean; pieces(from?: number): Generator<Buffer> }

export type OleFile = {
  streams: OleStream[]
  /** The position behind the last sector that is in use. */
  end: number
  /** A chain of sectors is broken, so that programs may read different bytes. */
  isDamaged: boolean
  /** Sectors and limits have the sizes that almost all files have. */
  hasUsualSizes: boolean
}

type Run = { start: number; end: number }
/** Finds the sector that follows another one. */
type Follow = (sector: number) => number

const maxEntries = 100_000
const maxTableSectors = 65_536
const entryBytes = 128
const lastSector = 0xffff_fffa
const freeSector = 0xffff_ffff
const streamType = 2
const rootType = 5

/** Reads the structure of a compound file; undefined when its header is not that of one. */
export function readOleFile(source: Source): OleFile | undefined {
  const header = source.read(0, 512)
  if (header.length < 512) return undefined
  const shift = header.readUInt16LE(30)
  const miniShift = header.readUInt16LE(32)
  if (shift < 7 || shift > 16 || miniShift > shift || miniShift < 2) return undefined
  const sectorBytes = 2 ** shift
  const table = readTable(source, header, sectorBytes)
  const follow: Follow = (sector) =>
    sector * 4 + 4 <= table.bytes.length ? table.bytes.readUInt32LE(sector * 4) : freeSector
  const toRun = (sector: number): Run => ({ start: (sector + 1) * sectorBytes, end: (sector + 2) * sectorBytes })
  const chainOf = (first: number, bytes: number) =>
    readChain(first, bytes, { sectorBytes, toRun, follow, limit: source.bytes })

  const list = chainOf(header.readUInt32LE(48), maxEntries * entryBytes)
  const entries = listEntries(readAll(source, list.runs))
  const root = entries.find(({ type }) => type === rootType)
  const rootRuns = chainOf(root?.first ?? lastSector, root?.bytes ?? 0).runs
  const rootSectors = listSectors(rootRuns, sectorBytes)
  const miniTable = readAll(source, chainOf(header.readUInt32LE(60), maxTableSectors * 512).runs)
  const miniBytes = 2 ** miniShift
  const mini = {
    sectorBytes: miniBytes,
    toRun(sector: number): Run | undefined {
      const position = sector * miniBytes
      const start = rootSectors[Math.floor(position / sectorBytes)]
      if (start === undefined) return undefined
      const at = start + (position % sectorBytes)
      return { start: at, end: at + miniBytes }
    },
    follow: (sector: number) => (sector * 4 + 4 <= miniTable.length ? miniTable.readUInt32LE(sector * 4) : freeSector),
    limit: source.bytes,
  }
  const cutoff = header.readUInt32LE(56)
  let isDamaged = table.isDamaged || list.isBroken || root === undefined
  // In a regular file no two streams share a sector.
  let restBytes = 2 * source.bytes
  const streams = entries
    .filter(({ type, bytes }) => type === streamType && bytes > 0)
    .map(({ name, first, bytes }): OleStream => {
      const taken = Math.min(bytes, restBytes)
      const { runs, isWhole } = bytes < cutoff ? readChain(first, taken, mini) : chainOf(first, taken)
      restBytes -= taken
      if (!isWhole || taken < bytes) isDamaged = true
      return { name, bytes, isWhole, pieces: (from = 0) => readRuns(source, runs, from) }
    })
  const hasUsualSizes = sectorBytes === 512 && miniBytes === 64 && cutoff === 4096
  return { streams, end: Math.min(source.bytes, findEnd(table.bytes, sectorBytes)), isDamaged, hasUsualSizes }
}

/** The table of all chains, whose sectors are listed in the header and in sectors of their own. */
function readTable(source: Source, header: Buffer, sectorBytes: number): { bytes: Buffer; isDamaged: boolean } {
  const sectors: number[] = []
  const add = (list: Buffer) => {
    for (let at = 0; at + 4 <= list.length && sectors.length < maxTableSectors; at += 4) {
      const sector = list.readUInt32LE(at)
      if (sector < lastSector) sectors.push(sector)
    }
  }
  add(header.subarray(76, 512))
  const visited = new Set<number>()
  let next = header.readUInt32LE(68)
  while (next < lastSector && !visited.has(next) && visited.size < 1024) {
    visited.add(next)
    const list = source.read((next + 1) * sectorBytes, (next + 2) * sectorBytes)
    if (list.length < sectorBytes) break
    add(list.subarray(0, -4))
    next = list.readUInt32LE(sectorBytes - 4)
  }
  // Sectors beyond the end of the content would only lengthen the table.
  const present = sectors.filter((sector) => (sector + 1) * sectorBytes < source.bytes)
  const most = Math.ceil(source.bytes / sectorBytes / (sectorBytes / 4)) + 1
  const bytes = Buffer.concat(
    present.slice(0, most).map((sector) => source.read((sector + 1) * sectorBytes, (sector + 2) * sectorBytes)),
  )
  return { bytes, isDamaged: present.length < sectors.length || sectors.length !== header.readUInt32LE(44) }
}

/** The position behind the last sector in use. */
function findEnd(table: Buffer, sectorBytes: number): number {
  let sector = Math.floor(table.length / 4) - 1
  while (sector >= 0 && table.readUInt32LE(sector * 4) === freeSector) sector--
  return (sector + 2) * sectorBytes
}

type Sectors = { sectorBytes: number; toRun(sector: number): Run | undefined; follow: Follow; limit: number }

/** The places of `bytes` bytes in a chain. Neighbouring sectors make one run. */
function readChain(first: number, bytes: number, { sectorBytes, toRun, follow, limit }: Sectors) {
  const runs: Run[] = []
  let rest = Math.min(bytes, limit)
  let sector = first
  // A chain that returns to itself ends with the bytes, which are never more than the content has.
  while (rest > 0 && sector < lastSector) {
    const run = toRun(sector)
    if (run === undefined || run.start >= limit) break
    const end = Math.min(run.start + Math.min(sectorBytes, rest), limit)
    const last = runs.at(-1)
    if (last?.end === run.start) last.end = end
    else runs.push({ start: run.start, end })
    rest -= end - run.start
    if (end - run.start < sectorBytes && rest > 0) break
    sector = follow(sector)
  }
  return { runs, isWhole: rest === 0 && bytes <= limit, isBroken: sector < lastSector && rest > 0 }
}

/** The positions of all sectors in runs. */
function listSectors(runs: Run[], sectorBytes: number): number[] {
  const positions: number[] = []
  for (const { start, end } of runs) for (let at = start; at < end; at += sectorBytes) positions.push(at)
  return positions
}

function* readRuns(source: Source, runs: Run[], from: number): Generator<Buffer> {
  let skipped = from
  for (const { start, end } of runs) {
    const at = Math.min(end, start + skipped)
    skipped -= at - start
    yield* source.pieces(at, end)
  }
}

const readAll = (source: Source, runs: Run[]) => Buffer.concat(runs.map(({ start, end }) => source.read(start, end)))

function listEntries(list: Buffer) {
  const entries: { name: string; type: number; first: number; bytes: number }[] = []
  for (let at = 0; at + entryBytes <= list.length && entries.length < maxEntries; at += entryBytes) {
    const nameBytes = Math.max(0, Math.min(64, list.readUInt16LE(at + 64)) - 2)
    const name = list.toString('utf16le', at, at + nameBytes)
    entries.push({
      name,
      type: list[at + 66] ?? 0,
      first: list.readUInt32LE(at + 116),
      bytes: list.readUInt32LE(at + 120),
    })
  }
  return entries
}
