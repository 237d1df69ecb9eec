import { findGitHeader } from '../../../../domain/content/git-formats.ts'
import { isZlibHead } from '../../../../domain/content/zlib-head.ts'
import { decompress } from '../inflate.ts'
import type { Members, Reader } from '../reader.ts'
import type { Source } from '../source.ts'
import type { Damage } from './pdf-filters.ts'
import { decodeFlate } from './pdf-flate.ts'

/** A stream that breaks after fewer bytes was none: its two first bytes are no signature. */
const minBytes = 1024
/** Enough for the header of an object of Git. */
const headBytes = 64

/** Reads zlib streams, as pigz and git write them. */
export const zlibReader: Reader = {
  name: 'zlib',
  recognizes: (source) => isZlibHead(source.read(0, 2)),
  async read(source, members) {
    const { pieces, getUsedBytes } = decompress('zlib', source.pieces(0, source.bytes))
    let bytes = 0

    async function* count() {
      for await (const piece of pieces) {
        bytes += piece.length
        yield piece
      }
    }

    try {
      await members.give({ path: '', pieces: withoutGitHeader(count()) })
      return { accounted: [{ start: 0, end: getUsedBytes() }], doubts: [] }
    } catch {
      if (await giveDamaged(source, members)) return { accounted: [], doubts: ['UnsupportedContainer'] }
      return { accounted: [], doubts: bytes < minBytes ? [] : ['UnsupportedContainer'] }
    }
  },
}

/** Leaves out the header of an object of Git here, so that archives of repositories do not have twice as many members. */
async function* withoutGitHeader(pieces: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  let head: Buffer | undefined = Buffer.alloc(0)
  for await (const piece of pieces) {
    if (head === undefined) {
      yield piece
      continue
    }
    head = Buffer.concat([head, piece])
    if (head.length < headBytes) continue
    yield head.subarray(findGitHeader(head))
    head = undefined
  }
  if (head !== undefined) yield head.subarray(findGitHeader(head))
}

/** Chance forms fewer bytes out of others. */
const minDamagedBytes = 32
/** Only the start of a longer one is scanned here: it leaves a doubt anyway. */
const maxDamagedBytes = 2 ** 20

/**
 * Gives what a damaged stream holds in front of the damage, as pigz writes it. Returns whether nothing but its checksum
 * is wrong, so that it is certainly one.
 */
async function giveDamaged(source: Source, members: Members): Promise<boolean> {
  const damage: Damage = { isDamaged: false }
  const pieces: Buffer[] = []
  let bytes = 0
  for await (const piece of decodeFlate(() => source.pieces(0, source.bytes), damage)) {
    pieces.push(piece)
    bytes += piece.length
    if (bytes > maxDamagedBytes) break
  }
  if (bytes < minDamagedBytes) return false
  await members.give({ path: '', pieces })
  return damage.isBroken !== true
}
