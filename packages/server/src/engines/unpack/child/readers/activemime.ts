import { isZlibHead } from '../../../../domain/content/zlib-head.ts'
import { decompress } from '../inflate.ts'
import type { Range, Reader } from '../reader.ts'
import type { Source } from '../source.ts'

const magic = Buffer.from('ActiveMime')
/** Where the head tells the length of its later part, and what stands before that. */
const laterBytesAt = 0x1e
const earlierBytes = 46
/** Where the stream begins in files of known programs. */
const usualStarts = [0x32, 0x22a]

/** Reads ActiveMime, in which Office keeps the macros of documents that are saved as web pages or as XML. */
export const activeMimeReader: Reader = {
  name: 'ActiveMime',
  recognizes: (source) => source.read(0, magic.length).equals(magic),
  async read(source, members) {
    const accounted: Range[] = []
    for (const start of listStarts(source)) {
      const { pieces, getUsedBytes } = decompress('zlib', source.pieces(start, source.bytes))
      const isWhole = await members.give({ path: '', pieces }).then(
        () => true,
        () => false,
      )
      if (isWhole) accounted.push({ start, end: start + getUsedBytes() })
    }
    return { accounted, doubts: accounted.length > 0 ? [] : ['UnsupportedContainer'] }
  },
}

function listStarts(source: Source): number[] {
  const laterBytes = source.read(laterBytesAt, laterBytesAt + 2)
  const told = laterBytes.length < 2 ? [] : [earlierBytes + laterBytes.readUInt16LE(0)]
  return [...new Set([...told, ...usualStarts])].filter((start) => isZlibHead(source.read(start, start + 2)))
}
