import { findGitHeader } from '../../../../domain/content/git-formats.ts'
import { isZlibHead } from '../../../../domain/content/zlib-head.ts'
import { decompress } from '../inflate.ts'
import type { Reader } from '../reader.ts'

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
