import { findWideText, readChar, type WideText } from '../../../../domain/content/container.ts'
import type { Reader, Source } from '../reader.ts'

const headBytes = 1024
/** Stands for each character that one byte cannot hold; no encoding of bytes in text has it. */
const otherChar = 0x3f
const pieceBytes = 65_536

/**
 * Reads UTF-16 and UTF-32, in which Windows stores scripts and tables: gives the text with one byte for each character,
 * as which the other readers and the signatures of scripts know it.
 */
export const wideTextReader: Reader = {
  name: 'UTF-16 and UTF-32',
  recognizes: (source) => findWideText(source.read(0, headBytes)) !== undefined,
  async read(source, members) {
    const text = findWideText(source.read(0, headBytes))
    if (text !== undefined) await members.give({ path: '[text]', pieces: narrow(source, text) })
    // Any bytes can be read as such a text, so that other content may begin in it: it is searched as if this were none.
    return { accounted: [], doubts: [] }
  },
}

function* narrow(source: Source, text: WideText): Generator<Buffer> {
  for (let at = text.start; at < source.bytes; at += pieceBytes) {
    const bytes = source.read(at, at + pieceBytes)
    const piece = Buffer.alloc(Math.floor(bytes.length / text.unit))
    for (let char = 0; char < piece.length; char++) {
      const code = readChar(bytes, char * text.unit, text)
      piece[char] = code > 0xff ? otherChar : code
    }
    yield piece
  }
}
