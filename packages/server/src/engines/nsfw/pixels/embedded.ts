import { newOverLimit } from './render.ts'

/** More than a camera or an editor puts into one file. */
const maxEmbedded = 16

/** More than compressed data has by chance: a picture may not hide behind beginnings that are none. */
const maxSignatures = 16_000

const signatures = [
  Buffer.from([0xff, 0xd8, 0xff]),
  Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]),
  Buffer.from('GIF87a'),
  Buffer.from('GIF89a'),
  Buffer.from('RIFF'),
]

/**
 * Finds the pictures within a picture: thumbnails in its metadata, the second one of a stereo camera, one that was
 * appended. They are searched by their first bytes at every position, because each format has its own places for them,
 * and every place is read by some program. Compressed data can look like such a beginning, so the caller must expect
 * content that is not a picture.
 */
export function findEmbedded(bytes: Buffer): Buffer[] {
  const starts = signatures
    .flatMap((signature) => findAll(bytes, signature))
    .filter((at) => isBeginning(bytes, at))
    .sort((a, b) => a - b)
  if (starts.length > maxEmbedded) throw newOverLimit(`${starts.length} pictures in one`)
  return starts.map((at) => bytes.subarray(at))
}

function findAll(bytes: Buffer, signature: Buffer): number[] {
  const found: number[] = []
  for (let at = bytes.indexOf(signature, 1); at >= 0; at = bytes.indexOf(signature, at + 1)) {
    found.push(at)
    if (found.length > maxSignatures) throw newOverLimit('too many beginnings of pictures in one')
  }
  return found
}

/** Excludes most of the data that has the first bytes of a picture by chance. */
function isBeginning(bytes: Buffer, at: number): boolean {
  if (bytes[at] === 0xff) {
    // The first segment of a JPEG: tables, a frame header, a comment or a block of an application.
    const marker = bytes[at + 3] ?? 0
    const isSegment = marker === 0xdb || marker === 0xdd || marker === 0xfe || (marker >= 0xc0 && marker <= 0xcf)
    return isSegment || (marker >= 0xe0 && marker <= 0xef)
  }
  return bytes.toString('latin1', at, at + 4) !== 'RIFF' || bytes.toString('latin1', at + 8, at + 12) === 'WEBP'
}
