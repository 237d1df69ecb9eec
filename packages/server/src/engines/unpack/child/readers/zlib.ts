import { isZlibHead } from '../../../../domain/content/zlib-head.ts'
import { decompress } from '../inflate.ts'
import type { Reader } from '../reader.ts'

/** A stream that breaks after fewer bytes was none: its two first bytes are no signature. */
const minBytes = 1024

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
      await members.give({ path: '', pieces: count() })
      return { accounted: [{ start: 0, end: getUsedBytes() }], doubts: [] }
    } catch {
      return { accounted: [], doubts: bytes < minBytes ? [] : ['UnsupportedContainer'] }
    }
  },
}
