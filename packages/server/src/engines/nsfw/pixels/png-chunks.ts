import { crc32 } from 'node:zlib'

export type PngChunk = { type: string; data: Buffer; isWhole: boolean }

const signature = Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a])

/**
 * Up to IEND; what follows it is shown by nobody. Check sums are not checked: some viewers show a chunk whose sum is
 * wrong and some leave it out, so it counts.
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
