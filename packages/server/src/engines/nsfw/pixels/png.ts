import { constants, crc32, deflateSync, inflateSync } from 'node:zlib'
import { newOverLimit, newUnsupported, Refusal, type Source } from './render.ts'

export type PngChunk = { type: string; data: Buffer; isWhole: boolean }

const signature = Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a])

/**
 * Reads the chunks up to IEND, behind which no viewer looks. Checksums are not verified: some viewers show a chunk with a
 * wrong checksum and some skip it, so it counts.
 */
export function* readPngChunks(bytes: Buffer): Generator<PngChunk> {
  let at = signature.length
  while (at + 8 <= bytes.length) {
    const length = bytes.readUInt32BE(at)
    const type = bytes.toString('latin1', at + 4, at + 8)
    const data = bytes.subarray(at + 8, at + 8 + length)
    yield { type, data, isWhole: data.length === length }
    if (type === 'IEND') return
    at += 12 + length
  }
}

export function toPng(chunks: { type: string; data: Buffer }[]): Buffer {
  const parts: Buffer[] = [signature]
  for (const { type, data } of chunks) {
    const name = Buffer.from(type, 'latin1')
    const [length, sum] = [Buffer.alloc(4), Buffer.alloc(4)]
    length.writeUInt32BE(data.length)
    sum.writeUInt32BE(crc32(data, crc32(name)))
    parts.push(length, name, data, sum)
  }
  return Buffer.concat(parts)
}

const maxRepairedBytes = 100_000_000

/**
 * Decodes a PNG strictly, and fills a truncated one up with zeros first. Otherwise libvips leaves in the missing rows
 * what its memory held before, even rows of the picture decoded last.
 */
export async function readPng<T>(source: Source, read: (source: Source) => Promise<T>): Promise<T> {
  const options = { ...source.options, failOn: 'truncated' as const }
  try {
    return await read({ bytes: source.bytes, options })
  } catch (error) {
    if (!(error instanceof Refusal)) throw error
    return read({ bytes: repair(source.bytes), options })
  }
}

function repair(bytes: Buffer): Buffer {
  const kept: { type: string; data: Buffer }[] = []
  const pixels: Buffer[] = []
  for (const { type, data, isWhole } of readPngChunks(bytes)) {
    if (type === 'IDAT') pixels.push(data)
    else if (isWhole && type !== 'IEND' && pixels.length === 0) kept.push({ type, data })
  }
  const header = kept[0]?.data
  if (kept[0]?.type !== 'IHDR' || header?.length !== 13) throw newUnsupported('a PNG without a header')
  const rows = Buffer.alloc(countRowBytes(header))
  inflate(Buffer.concat(pixels), rows.length).copy(rows)
  kept.push({ type: 'IDAT', data: deflateSync(rows, { level: 1 }) }, { type: 'IEND', data: Buffer.alloc(0) })
  return toPng(kept)
}

function inflate(data: Buffer, maxBytes: number): Buffer {
  try {
    return inflateSync(data, { finishFlush: constants.Z_SYNC_FLUSH, maxOutputLength: maxBytes + 1 })
  } catch {
    throw newUnsupported('a damaged PNG')
  }
}

/** The seven passes of an interlaced PNG: first column, first row, and the steps across and down. */
const passes = [
  [0, 0, 8, 8],
  [4, 0, 8, 8],
  [0, 4, 4, 8],
  [2, 0, 4, 4],
  [0, 2, 2, 4],
  [1, 0, 2, 2],
  [0, 1, 1, 2],
]

function countRowBytes(header: Buffer): number {
  const [width, height] = [header.readUInt32BE(0), header.readUInt32BE(4)]
  const [depth = 8, colour = 0] = [header[8], header[9]]
  const pixelBits = depth * ([1, 0, 3, 1, 2, 0, 4][colour] ?? 0)
  if (width === 0 || height === 0 || pixelBits === 0) throw newUnsupported('a PNG with a broken header')
  const isInterlaced = header[12] === 1
  const bytes = (isInterlaced ? passes : [[0, 0, 1, 1]]).reduce((sum, [left = 0, top = 0, across = 1, down = 1]) => {
    const columns = Math.max(0, Math.ceil((width - left) / across))
    const lines = Math.max(0, Math.ceil((height - top) / down))
    return columns === 0 ? sum : sum + lines * (1 + Math.ceil((columns * pixelBits) / 8))
  }, 0)
  if (bytes > maxRepairedBytes) throw newOverLimit(`a damaged PNG of ${width} x ${height} pixels`)
  return bytes
}
