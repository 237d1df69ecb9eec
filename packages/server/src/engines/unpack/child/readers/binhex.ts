import { binHexChar } from '../../../../domain/content/document-formats.ts'
import type { Doubt } from '../../../../domain/ports/engines.ts'
import type { Members, Range, Reader, Reading, Source } from '../reader.ts'
import { beginsAsDamagedText, listMatches } from './text-lines.ts'

/** Programs know a file by the sentence in front of it, some of them in any spelling. */
const mark = /must be converted with BinHex/gi
const longestMark = 64
/** The start of a file without the sentence, which uudeview reads as well: as many characters as a head takes. */
const strayStart = new RegExp(`(?<=^|[\\r\\n])[ \\t]{0,16}:(?=${binHexChar}{32})`, 'g')
const longestStart = 64
/** Sentences that are followed; behind each of them the start of a file is searched. */
const maxMarks = 1000
/** Text between the sentence and the file. */
const maxGapBytes = 65_536
const colon = 0x3a
const repeatMark = 0x90

const alphabet = '!"#$%&\'()*+,-012345689@ABCDEFGHIJKLMNPQRSTUVXYZ[`abcdefhijklmpqr'
const none = 64
const blank = 65
const values = new Uint8Array(256).fill(none)
for (let value = 0; value < alphabet.length; value++) values[alphabet.charCodeAt(value)] = value
for (const byte of [0x09, 0x0a, 0x0d, 0x20]) values[byte] = blank

/** Reads BinHex 4.0, in which files of the Macintosh travel as text, wherever it begins in a text. */
export const binHexReader: Reader = {
  name: 'BinHex',
  recognizes: (source) =>
    beginsAsDamagedText(source) &&
    (!listMatches(source, mark, longestMark).next().done || !listStrayStarts(source).next().done),
  read: readBinHex,
}

/** The positions behind the colons of files that no sentence announces. */
function* listStrayStarts(source: Source): Generator<number> {
  let count = 0
  for (const at of listMatches(source, strayStart, longestStart)) {
    if (++count > maxMarks) return
    const start = source.find(colonMark, at) + 1
    if (openFile(source, start).hasPlausibleHead()) yield start
  }
}

const colonMark = Buffer.from(':')

/** The starts of files, in order: behind a sentence, and without one. */
function listStarts(source: Source): { starts: number[]; isCut: boolean } {
  const starts = new Set<number>()
  let count = 0
  for (const at of listMatches(source, mark, longestMark)) {
    if (++count > maxMarks) break
    const start = findStart(source, at)
    if (start !== -1) starts.add(start)
  }
  for (const start of listStrayStarts(source)) starts.add(start)
  return { starts: [...starts].toSorted((a, b) => a - b), isCut: count > maxMarks }
}

async function readBinHex(source: Source, members: Members): Promise<Reading> {
  const accounted: Range[] = []
  const doubts = new Set<Doubt>()
  const { starts, isCut } = listStarts(source)
  if (isCut) doubts.add('ScanLimitExceeded')
  let end = 0
  for (const start of starts) {
    if (start < end) continue
    const file = openFile(source, start)
    for (const fork of file.forks) await members.give(fork)
    end = file.getEnd()
    if (!file.isWhole()) doubts.add('UnsupportedContainer')
    accounted.push({ start, end })
  }
  return { accounted, doubts: [...doubts] }
}

const dataStart = new RegExp(`[\\r\\n][ \\t]*:(?=${binHexChar}{20})`)

/** The position behind the colon that begins the file, at the start of a line; -1 where there is none. */
function findStart(source: Source, at: number): number {
  const text = source.read(at, at + maxGapBytes).toString('latin1')
  const found = dataStart.exec(text)
  return found === null ? -1 : at + found.index + found[0].length
}

/** Opens the file whose characters begin at `start`. Its forks must be read in turn. */
function openFile(source: Source, start: number) {
  const bytes = decode()
  let position = start
  let isCut = false

  /** Yields the bytes, with runs of one byte written out. */
  function* decode(): Generator<number> {
    let last = 0
    let isRepeat = false
    for (const byte of decodeChars()) {
      if (isRepeat && byte > 0) {
        for (let n = 1; n < byte; n++) yield last
      } else if (isRepeat || byte !== repeatMark) {
        // The mark stands for itself when a zero follows.
        last = isRepeat ? repeatMark : byte
        yield last
      }
      isRepeat = !isRepeat && byte === repeatMark
    }
  }

  /** Yields the bytes that four characters make of three, up to the colon at the end. */
  function* decodeChars(): Generator<number> {
    let [bits, count] = [0, 0]
    for (const piece of source.pieces(start, source.bytes)) {
      for (const char of piece) {
        position++
        const value = values[char] as number
        if (value === blank) continue
        if (value === none) {
          isCut ||= char !== colon
          return
        }
        bits = ((bits << 6) | value) & 0xffff
        count += 6
        if (count < 8) continue
        count -= 8
        yield (bits >> count) & 0xff
      }
    }
    isCut = true
  }

  function take(length: number): Buffer {
    const taken: number[] = []
    for (let n = 0; n < length; n++) {
      const { value, done } = bytes.next()
      if (done === true) {
        isCut = true
        break
      }
      taken.push(value)
    }
    return Buffer.from(taken)
  }

  function* takePieces(length: number): Generator<Buffer> {
    for (let left = length; left > 0 && !isCut; left -= pieceBytes) yield take(Math.min(left, pieceBytes))
  }

  function* listForks() {
    const name = take(take(1)[0] ?? 0).toString('latin1')
    const head = take(headBytes)
    if (head.length < headBytes) return
    const [dataBytes, resourceBytes] = [head.readUInt32BE(lengthsAt), head.readUInt32BE(lengthsAt + 4)]
    yield { path: name, pieces: takePieces(dataBytes) }
    take(checksumBytes)
    if (resourceBytes > 0) yield { path: '[resource fork]', pieces: takePieces(resourceBytes) }
  }

  /** Whether the bytes begin with a name, the version and lengths that the content can have. */
  function hasPlausibleHead(): boolean {
    const name = take(take(1)[0] ?? 0)
    const head = take(headBytes)
    if (name.length === 0 || name.length > maxNameBytes || head.length < headBytes || head[0] !== 0) return false
    const longest = maxRepeats * source.bytes
    return head.readUInt32BE(lengthsAt) <= longest && head.readUInt32BE(lengthsAt + 4) <= longest
  }

  return { hasPlausibleHead, forks: listForks(), getEnd: () => position, isWhole: () => !isCut }
}

const pieceBytes = 65_536
const maxNameBytes = 63
/** Three characters may stand for so many bytes. */
const maxRepeats = 255
const checksumBytes = 2
/** Version, type, creator, flags, two lengths and a checksum follow the name. */
const headBytes = 1 + 4 + 4 + 2 + 8 + checksumBytes
const lengthsAt = 11
