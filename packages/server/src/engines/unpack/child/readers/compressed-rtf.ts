import { isBinary } from '../../../../domain/content/format-row.ts'
import type { Doubt } from '../../../../domain/ports/engines.ts'
import type { Reader } from '../reader.ts'
import type { Source } from '../source.ts'

const headBytes = 16
const kinds = { compressed: 'LZFu', plain: 'MELA' }
/** The length in the head counts everything behind itself. */
const lengthBytes = 4
const dictionaryBytes = 4096
const pieceBytes = 65_536

/** The format defines these first bytes of the dictionary. */
const dictionaryStart = Buffer.from(
  '{\\rtf1\\ansi\\mac\\deff0\\deftab720{\\fonttbl;}{\\f0\\fnil \\froman \\fswiss \\fmodern \\fscript \\fdecor ' +
    'MS Sans SerifSymbolArialTimes New RomanCourier{\\colortbl\\red0\\green0\\blue0\r\n\\par \\pard\\plain\\f0\\fs20' +
    '\\b\\i\\u\\tab\\tx',
)

/** Reads the text of messages as Outlook stores it: RTF, compressed in a way of its own. */
export const compressedRtfReader: Reader = {
  name: 'compressed RTF',
  recognizes: (source) => Object.values(kinds).includes(readKind(source)) && isBinary(source.read(0, headBytes)),
  async read(source, members) {
    const end = lengthBytes + source.read(0, lengthBytes).readUInt32LE(0)
    const doubts = new Set<Doubt>(end > source.bytes ? ['UnsupportedContainer'] : [])
    const last = Math.min(end, source.bytes)
    if (readKind(source) === kinds.plain) {
      await members.give({ path: '', pieces: source.pieces(headBytes, last) })
      return { accounted: [{ start: 0, end: last }], doubts: [...doubts] }
    }
    const { pieces, getUsedBytes } = inflate(source, last)
    await members.give({ path: '', pieces })
    return { accounted: [{ start: 0, end: headBytes + getUsedBytes() }], doubts: [...doubts] }
  },
}

const readKind = (source: Source) => source.read(8, 12).toString('latin1')

/** Decompresses the text up to the mark of its end, or up to the end of the data. */
function inflate(source: Source, end: number) {
  const bytes = listBytes(source, headBytes, end)
  let usedBytes = 0

  function read(): number {
    const { value = -1 } = bytes.next()
    if (value !== -1) usedBytes++
    return value
  }

  function* readPieces(): Generator<Buffer> {
    const dictionary = Buffer.alloc(dictionaryBytes)
    dictionaryStart.copy(dictionary)
    let write = dictionaryStart.length
    let piece = Buffer.alloc(pieceBytes)
    let filled = 0

    function put(byte: number) {
      dictionary[write] = byte
      write = (write + 1) % dictionaryBytes
      piece[filled++] = byte
    }

    for (let control = read(); control !== -1; control = read()) {
      for (let bit = 1; bit < 256; bit <<= 1) {
        const first = read()
        if (first === -1) return yield piece.subarray(0, filled)
        if ((control & bit) === 0) put(first)
        else {
          const second = read()
          const offset = (first << 4) | (second >> 4)
          if (second === -1 || offset === write) return yield piece.subarray(0, filled)
          const length = (second & 15) + 2
          for (let n = 0; n < length; n++) put(dictionary[(offset + n) % dictionaryBytes] as number)
        }
        if (filled > pieceBytes - 32) {
          yield piece.subarray(0, filled)
          piece = Buffer.alloc(pieceBytes)
          filled = 0
        }
      }
    }
    yield piece.subarray(0, filled)
  }

  return { pieces: readPieces(), getUsedBytes: () => usedBytes }
}

function* listBytes(source: Source, start: number, end: number): Generator<number, undefined> {
  for (const piece of source.pieces(start, end)) yield* piece
  return undefined
}
