import { ascii85End, ascii85Kinds, minAscii85Chars } from '../../../../domain/content/encoded-text.ts'
import { hasSignature, type Members, type Range, type Reader, type Reading, type Source } from '../reader.ts'
import { accountForText, beginsAsText, type EncodedData, findTextEnd, giveEncoded } from './text-lines.ts'

const begin = Buffer.from('<~')
const end = Buffer.from(ascii85End)

/** PDF names the filter of its streams, and its reader decodes them. RTF has the marks only by chance. */
const otherText = /^(?:%PDF-|\{\\rt)/

/** Reads Ascii85 between its marks `<~` and `~>`, of which a program may leave out the first at the start of a file. */
export const ascii85Reader: Reader = {
  name: 'Ascii85',
  recognizes: (source) => {
    const head = source.read(0, 16).toString('latin1')
    return beginsAsText(source) && !otherText.test(head) && source.find(end, 0) !== -1
  },
  read: readAscii85,
}

async function readAscii85(source: Source, members: Members): Promise<Reading> {
  const hasData = await giveEncoded(members, '[further Ascii85]', () => listReadings(source))
  // The text itself was scanned with the content.
  return { accounted: hasData ? accountForText(findTextEnd(source)) : [], doubts: [] }
}

/** In the string of a program, signs stand behind a backslash, which may also be data. */
function* listReadings(source: Source): Generator<EncodedData> {
  for (const { start, end: stop } of listData(source)) {
    const path = `[Ascii85 at ${start}]`
    yield { path, decode: () => decode(source.pieces(start, stop)) }
    if (source.find(backslash, start, stop) !== -1)
      yield { path, decode: () => decode(withoutEscapes(source.pieces(start, stop))) }
  }
}

const backslash = Buffer.from('\\')
const byteOrderMark = Buffer.from('\ufeff')

/** The data between marks. Other characters tell that the marks have another meaning. */
function* listData(source: Source): Generator<Range> {
  const text = hasSignature(source, byteOrderMark) ? byteOrderMark.length : 0
  let start = text
  let before = -1
  for (let stop = source.find(end, 0); stop !== -1; stop = source.find(end, stop + 1)) {
    for (let at = source.find(begin, start, stop); at !== -1; at = source.find(begin, at + 1, stop)) before = at
    const data = { start: before === -1 ? text : before + begin.length, end: stop }
    if ((before !== -1 || start === text) && isData(source, data)) yield data
    start = stop + end.length
    before = -1
  }
}

function isData(source: Source, { start, end: stop }: Range): boolean {
  let chars = 0
  for (const piece of source.pieces(start, stop)) {
    for (let at = 0; at < piece.length; at++) {
      const kind = ascii85Kinds[piece[at] as number]
      if (kind === 0) return false
      if (kind === 1) chars++
    }
  }
  return chars >= minAscii85Chars
}

/** Removes the backslash in front of a sign, and line ends that are written as escapes. */
function* withoutEscapes(pieces: Iterable<Buffer>): Generator<Buffer> {
  let wasBackslash = false
  for (const piece of pieces) {
    const out = Buffer.allocUnsafe(piece.length)
    let length = 0
    for (let at = 0; at < piece.length; at++) {
      const byte = piece[at] as number
      const isEscaped: boolean = wasBackslash
      wasBackslash = byte === backslash[0] && !isEscaped
      if (!wasBackslash && !(isEscaped && lineEnds.includes(byte))) out[length++] = byte
    }
    yield out.subarray(0, length)
  }
}

const lineEnds = Buffer.from('nrt')

const zeros = 0x7a
const spaces = 0x79
const first = 0x21

/** Decodes five characters to four bytes, up to a group that stands for a larger number. */
function* decode(pieces: Iterable<Buffer>): Generator<Buffer> {
  let group: number[] = []
  for (const piece of pieces) {
    const out: number[] = []
    for (let at = 0; at < piece.length; at++) {
      const byte = piece[at] as number
      if (ascii85Kinds[byte] !== 1) continue
      if (group.length === 0 && (byte === zeros || byte === spaces)) {
        const filler = byte === zeros ? 0 : 0x20
        out.push(filler, filler, filler, filler)
        continue
      }
      group.push(byte - first)
      if (group.length < 5) continue
      const bytes = toBytes(group)
      if (bytes === undefined) return yield Buffer.from(out)
      out.push(...bytes)
      group = []
    }
    yield Buffer.from(out)
  }
  if (group.length < 2) return
  const missing = 5 - group.length
  const bytes = toBytes([...group, ...Array<number>(missing).fill(84)])
  if (bytes !== undefined) yield bytes.subarray(0, 4 - missing)
}

function toBytes(group: number[]): Buffer | undefined {
  const value = group.reduce((sum, digit) => sum * 85 + digit, 0)
  if (value > 0xffff_ffff) return undefined
  const bytes = Buffer.alloc(4)
  bytes.writeUInt32BE(value)
  return bytes
}
