import { findGitHeader } from '../../../../domain/content/git-formats.ts'
import { isZlibHead } from '../../../../domain/content/zlib-head.ts'
import { decompress } from '../inflate.ts'
import type { Members, Reader } from '../reader.ts'
import type { Source } from '../source.ts'

/** A stream that breaks after fewer bytes was none: its two first bytes are no signature. */
const minBytes = 1024
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
      if (await giveUnchecked(source, members)) return { accounted: [], doubts: ['UnsupportedContainer'] }
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

const headerBytes = 2
/** Chance forms a whole stream of fewer bytes. */
const minWholeBytes = 32

/** Gives a stream that is whole but for its checksum: pigz writes what it holds and complains. */
async function giveUnchecked(source: Source, members: Members): Promise<boolean> {
  const pieces: Buffer[] = []
  let bytes = 0
  try {
    for await (const piece of decompress('deflate', source.pieces(headerBytes, source.bytes)).pieces) {
      bytes += piece.length
      if (bytes <= maxUncheckedBytes) pieces.push(piece)
    }
  } catch {
    return false
  }
  if (bytes < minWholeBytes) return false
  await members.give({ path: '', pieces })
  return true
}

/** The start is scanned: content with a wrong checksum is a doubt anyway. */
const maxUncheckedBytes = 2 ** 20
