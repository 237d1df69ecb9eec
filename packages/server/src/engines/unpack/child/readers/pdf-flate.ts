import { constants, inflateRawSync, inflateSync } from 'node:zlib'
import { decompress } from '../inflate.ts'
import type { Bytes, Damage } from './pdf-filters.ts'

/** Small enough that little output is lost with the piece in which the decoder meets the damage. */
const smallPieceBytes = 64
const maxSmallPieces = 65_536

/**
 * Decodes a zlib stream. zlib drops what it decoded from the piece in which it meets an error, and a wrong checksum is
 * such an error, so that a damaged stream is decoded again without the checksum: a short one up to the damage, a longer
 * one in small pieces. `reopen` returns the input from its start.
 */
export async function* decodeFlate(reopen: () => Bytes, damage: Damage): AsyncGenerator<Buffer> {
  const short = await readShort(reopen())
  const whole = short === undefined ? undefined : inflateShort(short)
  if (whole !== undefined) {
    yield whole
    return
  }
  const start = short === undefined ? undefined : inflateStart(short.subarray(headerBytes))
  if (start !== undefined) {
    damage.isDamaged = true
    damage.isBroken = start.usedBytes < start.allBytes - maxTailBytes
    yield start.bytes
    return
  }
  let given = 0
  try {
    for await (const piece of decompress('zlib', reopen()).pieces) {
      yield piece
      given += piece.length
    }
    return
  } catch {
    damage.isDamaged = true
  }
  let skipped = 0
  try {
    for await (const piece of decompress('deflate', cutSmall(reopen())).pieces) {
      const rest = piece.subarray(Math.max(0, given - skipped))
      skipped += piece.length
      if (rest.length > 0) yield rest
    }
  } catch {
    damage.isBroken = true
  }
}

/** The checksum at the end of a stream and a line end, in which damage loses nothing. */
const maxTailBytes = 8

/** Streams up to this length, which most are, are decoded in one call: a decoder with its own stream costs more. */
const maxShortBytes = 65_536
const maxWholeBytes = 2 ** 20

/** The bytes when they are few, otherwise undefined. */
async function readShort(input: Bytes): Promise<Buffer | undefined> {
  const pieces: Buffer[] = []
  let bytes = 0
  for await (const piece of input) {
    pieces.push(piece)
    bytes += piece.length
    if (bytes > maxShortBytes) return undefined
  }
  return Buffer.concat(pieces)
}

function inflateShort(bytes: Buffer): Buffer | undefined {
  try {
    return inflateSync(bytes, { maxOutputLength: maxWholeBytes })
  } catch {
    return undefined
  }
}

/** Decodes as many bytes of raw Deflate as there are before the first damage; undefined when they give too much. */
function inflateStart(bytes: Buffer): { bytes: Buffer; usedBytes: number; allBytes: number } | undefined {
  const options = { finishFlush: constants.Z_SYNC_FLUSH, maxOutputLength: maxWholeBytes }
  let found = { bytes: Buffer.alloc(0) as Buffer, usedBytes: 0, allBytes: bytes.length }
  for (let low = 0, high = bytes.length; low < high; ) {
    const middle = Math.ceil((low + high) / 2)
    try {
      found = { ...found, bytes: inflateRawSync(bytes.subarray(0, middle), options), usedBytes: middle }
      low = middle
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'ERR_BUFFER_TOO_LARGE') return undefined
      high = middle - 1
    }
  }
  return found
}

/** The header of zlib, in front of the Deflate. */
const headerBytes = 2

/** Cuts the bytes behind the header into small pieces. */
async function* cutSmall(input: Bytes): AsyncGenerator<Buffer> {
  let header = headerBytes
  let count = 0
  for await (const piece of input) {
    const from = Math.min(header, piece.length)
    header -= from
    for (let at = from; at < piece.length; count++) {
      const length = count < maxSmallPieces ? smallPieceBytes : piece.length
      yield piece.subarray(at, at + length)
      at += length
    }
  }
}
