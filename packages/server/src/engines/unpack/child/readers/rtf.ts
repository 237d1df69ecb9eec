import { isBinary } from '../../../../domain/content/format-row.ts'
import type { Doubt } from '../../../../domain/ports/engines.ts'
import { hasSignature, isMixed, type Members, type Reader, type Reading, readFirst, type Source } from '../reader.ts'
import { cut, findPackagedFile } from './ole.ts'
import { hexValue } from './transfer-encodings.ts'

const signature = Buffer.from('{\\rt')
const dataMark = Buffer.from('\\objdata')
const maxObjects = 5000
const headBytes = 8192

/** Reads RTF: gives the data of embedded objects, and the files in them. */
export const rtfReader: Reader = {
  name: 'RTF',
  recognizes: (source) => hasSignature(source, signature),
  read: readRtf,
}

async function readRtf(source: Source, members: Members): Promise<Reading> {
  let count = 0
  for (let at = source.find(dataMark, 0); at !== -1; at = source.find(dataMark, at + dataMark.length)) {
    if (++count > maxObjects) return { accounted: [{ start: 0, end: source.bytes }], doubts: ['ScanLimitExceeded'] }
    const start = at + dataMark.length
    const isNested = await giveObject(members, () => decodeObjectData(source, start, { takesNested: true }), count)
    if (isNested) await giveObject(members, () => decodeObjectData(source, start, { takesNested: false }), count)
  }
  const body = { start: 0, end: findRtfEnd(source) }
  return { accounted: [body], searched: isMixed(source, body) ? [body] : [], doubts: [] }
}

type Decoding = ReturnType<typeof decodeObjectData>

/** Gives the data of an object and the native data in it. Returns whether groups are within the data. */
async function giveObject(members: Members, decode: () => Decoding, number: number): Promise<boolean> {
  const whole = decode()
  await members.give({ path: `object ${number}`, pieces: whole.pieces })
  const head = readFirst(decode().pieces, headBytes)
  const native = findNativeData(head)
  if (native !== undefined) {
    const pieces = () => cut(skip(decode().pieces, native.start), native.bytes)
    await members.give({ path: `object ${number} ${native.className}`, pieces: pieces() })
    const file = findPackagedFile(head, native.start)
    if (file !== undefined) {
      const inner = cut(skip(decode().pieces, file.start), file.end - file.start)
      await members.give({ path: file.name || '[package]', pieces: inner })
    }
  }
  return whole.hasNested()
}

function* skip(pieces: Iterable<Buffer>, bytes: number): Generator<Buffer> {
  let rest = bytes
  for (const piece of pieces) {
    const from = Math.min(rest, piece.length)
    rest -= from
    yield piece.subarray(from)
  }
}

/** An embedded object of OLE 1: version, kind, three texts with their lengths, and the length of the native data. */
function findNativeData(head: Buffer): { className: string; start: number; bytes: number } | undefined {
  if (head.length < 24) return undefined
  let at = 8
  let className = ''
  for (let n = 0; n < 3; n++) {
    if (at + 4 > head.length) return undefined
    const length = head.readUInt32LE(at)
    if (length > head.length) return undefined
    if (n === 0) className = head.toString('latin1', at + 4, at + 4 + Math.max(0, length - 1))
    at += 4 + length
  }
  return at + 4 > head.length ? undefined : { className, start: at + 4, bytes: head.readUInt32LE(at) }
}

const openBrace = 0x7b
const closeBrace = 0x7d
const backslash = 0x5c
const pieceBytes = 65_536
/** Programs cut longer control words. */
const maxWordBytes = 64
const controlWord = /^\\(?:([a-zA-Z]{1,40})(-?\d{1,10})? ?|'[\da-fA-F]{0,2}|[^a-zA-Z])/s

/**
 * Decodes the digits behind `\objdata` up to the end of their group. Blanks, control words and other characters between
 * the digits are skipped, as Word does. Programs differ in whether the digits in an inner group count.
 */
function decodeObjectData(source: Source, start: number, { takesNested }: { takesNested: boolean }) {
  let hasNested = false

  function* read(): Generator<Buffer> {
    let output = Buffer.allocUnsafe(pieceBytes)
    let used = 0
    let high = -1
    let depth = 1
    // A number may belong to the control word itself.
    let at = start
    at += /^-?\d{1,10} /.exec(source.read(start, start + 16).toString('latin1'))?.[0].length ?? 0
    while (at < source.bytes && depth > 0) {
      const block = source.read(at, at + pieceBytes)
      let n = 0
      for (; n < block.length && depth > 0; n++) {
        const byte = block[n] as number
        if (byte === backslash) break
        if (byte === openBrace) {
          hasNested = true
          depth++
        } else if (byte === closeBrace) depth--
        else if (depth === 1 || takesNested) {
          const digit = hexValue(byte)
          if (digit < 0) continue
          if (high < 0) high = digit
          else {
            output[used++] = high * 16 + digit
            high = -1
          }
        }
      }
      at += n
      if (depth > 0 && n < block.length) {
        const control = readControl(source, at)
        at = control.end
        if (control.rawBytes > 0) {
          yield output.subarray(0, used)
          yield* source.pieces(at, at + control.rawBytes)
          output = Buffer.allocUnsafe(pieceBytes)
          used = 0
          at += control.rawBytes
        }
      }
      if (used > pieceBytes / 2) {
        yield output.subarray(0, used)
        output = Buffer.allocUnsafe(pieceBytes)
        used = 0
      }
    }
    yield output.subarray(0, used)
  }

  return { pieces: read(), hasNested: () => hasNested }
}

/** The position behind the group that encloses the whole document, and behind the blanks and zeros after it. */
function findRtfEnd(source: Source): number {
  let depth = 0
  let at = 0
  while (at < source.bytes) {
    const block = source.read(at, at + 2 ** 20)
    let n = 0
    let hasBin = false
    for (; n < block.length; n++) {
      const byte = block[n]
      if (byte === openBrace) depth++
      else if (byte === closeBrace && --depth <= 0) return skipBlanks(source, at + n + 1)
      else if (byte === backslash) {
        // A word that is cut by the end of the block is read again with the next one.
        hasBin = block[n + 1] === 0x62 && block[n + 2] === 0x69
        if (hasBin || n + 3 >= block.length) break
        n++
      }
    }
    at += n
    if (n < block.length) {
      const control = readControl(source, at)
      at = control.end + (hasBin ? control.rawBytes : 0)
    }
  }
  return source.bytes
}

function skipBlanks(source: Source, from: number): number {
  const text = source.read(from, from + 4096).toString('latin1')
  return from + (/^[\0\s]*/.exec(text)?.[0].length ?? 0)
}

/** The position behind a control word, and the number of raw bytes that follow it. */
function readControl(source: Source, at: number): { end: number; rawBytes: number } {
  const text = source.read(at, at + maxWordBytes).toString('latin1')
  const [all = '\\', word, number] = controlWord.exec(text) ?? []
  const rawBytes = word === 'bin' ? Math.max(0, Number(number ?? 0)) : 0
  return { end: at + Math.max(1, all.length), rawBytes: Math.min(rawBytes, source.bytes) }
}

const headerBytes = 16
const compressedKinds = { compressed: 'LZFu', plain: 'MELA' }
/** The length in the head counts everything behind itself. */
const lengthBytes = 4
const dictionaryBytes = 4096

/** The format defines these first bytes of the dictionary. */
const dictionaryStart = Buffer.from(
  '{\\rtf1\\ansi\\mac\\deff0\\deftab720{\\fonttbl;}{\\f0\\fnil \\froman \\fswiss \\fmodern \\fscript \\fdecor ' +
    'MS Sans SerifSymbolArialTimes New RomanCourier{\\colortbl\\red0\\green0\\blue0\r\n\\par \\pard\\plain\\f0\\fs20' +
    '\\b\\i\\u\\tab\\tx',
)

/** Reads the text of messages as Outlook stores it: RTF, compressed in a way of its own. */
export const compressedRtfReader: Reader = {
  name: 'compressed RTF',
  recognizes: (source) =>
    Object.values(compressedKinds).includes(readKind(source)) && isBinary(source.read(0, headerBytes)),
  async read(source, members) {
    const end = lengthBytes + source.read(0, lengthBytes).readUInt32LE(0)
    const doubts = new Set<Doubt>(end > source.bytes ? ['UnsupportedContainer'] : [])
    const last = Math.min(end, source.bytes)
    if (readKind(source) === compressedKinds.plain) {
      await members.give({ path: '', pieces: source.pieces(headerBytes, last) })
      return { accounted: [{ start: 0, end: last }], doubts: [...doubts] }
    }
    const { pieces, getUsedBytes } = decompressRtf(source, last)
    await members.give({ path: '', pieces })
    return { accounted: [{ start: 0, end: headerBytes + getUsedBytes() }], doubts: [...doubts] }
  },
}

const readKind = (source: Source) => source.read(8, 12).toString('latin1')

/** Decompresses the text up to the mark of its end, or up to the end of the data. */
function decompressRtf(source: Source, end: number) {
  const bytes = listBytes(source, headerBytes, end)
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
