import {
  findKinds,
  findOnlyWord,
  hasBase32Kinds,
  hasBase64Kinds,
  hasEncodedKinds,
  isHash,
  longestHash,
  minBase32Chars,
  minBase64Chars,
  minLineChars,
} from '../../../../domain/content/base64-text.ts'
import { canHoldContent } from '../../../../domain/content/container.ts'
import { isMailHead, isOrdinaryKey } from '../../../../domain/content/document-formats.ts'
import { listPieces, type Members, type Range, type Reader, type Reading, type Source } from '../reader.ts'
import { type Base64Run, listBase64Runs } from './base64-runs.ts'
import {
  accountForText,
  beginsAsDamagedText,
  type EncodedData,
  findControl,
  findTextEnd,
  giveEncoded,
  hasTextHead,
  listLines,
} from './text-lines.ts'
import { decodeBase64 } from './transfer-encodings.ts'

/** PDF and RTF have base64 only by chance. Mail has a reader that knows where base64 begins and ends. */
const otherText = /^(?:%PDF-|\{\\rt)/
const headBytes = 65_536
const maxKeyChars = 65_536

/** Reads base64 and base32 in program text, markup and data: in quotes, over several lines, or as a data address. */
export const base64TextReader: Reader = {
  name: 'base64 and base32 in text',
  recognizes: (source) => {
    const head = source.read(0, headBytes)
    return beginsAsDamagedText(source) && !otherText.test(head.toString('latin1', 0, 16)) && !isMailHead(head)
  },
  read: readBase64Text,
}

async function readBase64Text(source: Source, members: Members): Promise<Reading> {
  const textEnd = findTextEnd(source)
  // Programs decode a damaged line up to the damage.
  const end = hasTextHead(source) ? source.bytes : findControl(source, textEnd)
  const hasData = await giveEncoded(members, '[further base64]', () => listEncoded(source, end))
  return { accounted: hasData ? accountForText(textEnd) : [], doubts: [] }
}

function* listEncoded(source: Source, end: number): Generator<EncodedData> {
  for (const reading of listReadings(source, end)) {
    yield {
      path: `[${reading.name} at ${getStart(reading.run)}]`,
      decode: reading.decode,
      isLeftOut: () => [isHashRun, isArmoured, isKey, isPartOfContainer].some((isOther) => isOther(source, reading)),
    }
  }
}

type RunReading = { name: string; run: Base64Run; decode(): Generator<Buffer> }

/** The readings of each run: as base64, and in the alphabets of base32. */
function* listReadings(source: Source, end: number): Generator<RunReading> {
  for (const run of listRuns(source, end)) {
    if (run.isBase64) yield { name: 'base64', run, decode: () => decodeRun(source, run) }
    for (const decode of listBase32(source, run)) yield { name: 'base32', run, decode }
  }
}

function* listRuns(source: Source, end: number): Generator<Base64Run> {
  yield* listBase64Runs(source, end)
  yield* listShortLineRuns(source, end)
}

const getStart = ({ ranges: [first] }: Base64Run) => first?.start ?? 0

function isHashRun(source: Source, { run: { ranges, chars } }: RunReading): boolean {
  const [first] = ranges
  if (first === undefined || chars > longestHash) return false
  return isHash(source.read(first.start, first.start + chars), 0, chars)
}

/** The armour of signed and encrypted content. Other labels say nothing: some programs decode what follows any. */
const armourLabel = /^-----BEGIN (?:PGP |AGE |CMS-|PKCS7-)/
/** Headers of armour between its first line and its data. */
const maxHeaderBytes = 1024

/** Whether the run is the data of an armour, whose own reader knows where the data begins and ends. */
function isArmoured(source: Source, { run }: RunReading): boolean {
  const start = getStart(run)
  const before = source.read(start - maxHeaderBytes, start).toString('latin1')
  const begin = before.lastIndexOf('-----BEGIN ')
  return armourLabel.test(before.slice(begin)) && !before.includes('-----END ', begin)
}

/** Keys and certificates hold no other content, and programs carry many of them. */
function isKey(_source: Source, { run, decode }: RunReading): boolean {
  return run.chars <= maxKeyChars && isOrdinaryKey(Buffer.concat([...decode()]))
}

/** The start of a run that begins as a container is not given alone: the whole run begins so, too, and is given. */
function isPartOfContainer(_source: Source, { run, decode }: RunReading): boolean {
  const [head] = run.isStart === true ? decode() : []
  return head !== undefined && canHoldContent(head)
}

/** Decodes a run, in the alphabet for addresses, too. */
const decodeRun = (source: Source, { ranges }: Base64Run): Generator<Buffer> =>
  decodeBase64(listPieces(source, ranges), { onJunk: 'skip', onPad: 'stop', isUrlSafe: true })

const maxWordBytes = 64

/**
 * Finds base64 in lines of fewer than 32 characters, in the text before `end`: lines with one word each, all of one
 * length but for a shorter last one.
 */
function* listShortLineRuns(source: Source, end: number): Generator<Base64Run> {
  let lines: Range[] = []
  let width = 0
  let before: Range | undefined
  let lastLine = { start: 0, end: 0 }
  for (const { start, bytes } of listLines(source, 0, end)) {
    const word = findOnlyWord(bytes, 0, bytes.length)
    const length = word === undefined ? 0 : word.end - word.start
    if (word !== undefined && length === 0) continue
    const range = word === undefined ? undefined : { start: start + word.start, end: start + word.end }
    if (length !== width) {
      yield* listRunsOfLines(source, { before, lines, last: length < width ? range : undefined })
      before = undefined
      lines = []
      width = length
      if (range !== undefined && length < minLineChars) before = findLastWord(source, lastLine)
    }
    if (range !== undefined && length < minLineChars) lines.push(range)
    lastLine = { start, end: start + bytes.length }
  }
  yield* listRunsOfLines(source, { before, lines })
}

/** The last word of a line: the data may begin in the line that names it, and some programs decode any word. */
function findLastWord(source: Source, line: Range): Range | undefined {
  const text = source.read(Math.max(line.start, line.end - maxWordBytes), line.end).toString('latin1')
  // A sign behind the word joins strings.
  const found = /([A-Za-z0-9+/_-]+)(?:[^A-Za-z0-9+/_=-]+[+/_-]{1,3})?[^A-Za-z0-9+/_=-]*$/.exec(text)
  if (found?.[1] === undefined) return undefined
  const start = line.end - text.length + found.index
  return { start, end: start + found[1].length }
}

type Lines = { before: Range | undefined; lines: Range[]; last?: Range | undefined }

/** The base64 of equal lines, with and without the words around them, which may be part of it. */
function* listRunsOfLines(source: Source, { before, lines, last }: Lines): Generator<Base64Run> {
  const chars = lines.reduce((sum, { start, end }) => sum + end - start, 0)
  const lastChars = last === undefined ? 0 : last.end - last.start
  if (chars + lastChars < minBase64Chars) return
  const kinds = findKindsOf(source, lines)
  const allKinds = last === undefined ? kinds : kinds | findKindsOf(source, [last])
  // The last line may be a word of other text, which makes a list of numbers look like base32.
  if (!hasEncodedKinds(allKinds, chars + lastChars) || !(hasBase64Kinds(allKinds) || hasBase32Kinds(kinds))) return
  const isBase64 = hasBase64Kinds(allKinds)
  // The first line may be another word of the same length.
  for (const start of [lines, lines.slice(1), ...(before === undefined ? [] : [[before, ...lines]])]) {
    yield { ranges: start, chars, isBase64 }
    if (last !== undefined) yield { ranges: [...start, last], chars: chars + lastChars, isBase64 }
  }
}

function findKindsOf(source: Source, lines: Range[]): number {
  let kinds = 0
  for (const piece of source.pieces(lines[0]?.start ?? 0, lines.at(-1)?.end ?? 0)) kinds |= findKinds(piece)
  return kinds
}

/** The values of bytes that base32 has not, and of those that it may have between and behind its characters. */
const none = 255
const filler = 254

/** The alphabets of RFC 4648, in which programs ignore the case. */
const alphabets = ['ABCDEFGHIJKLMNOPQRSTUVWXYZ234567', '0123456789ABCDEFGHIJKLMNOPQRSTUV'].map((letters) => {
  const values = new Uint8Array(256).fill(none)
  for (const char of ' \t\r\n\v\f=') values[char.charCodeAt(0)] = filler
  for (const [value, letter] of [...letters].entries())
    for (const char of [letter, letter.toLowerCase()]) values[char.charCodeAt(0)] = value
  return values
})
const pad = 0x3d

/** Kinds of characters, which tell base32 from base64 and from hexadecimal digits. */
const upper = 1
const lower = 2
const behindF = 4
const other = 8
const charKinds = Uint8Array.from({ length: 256 }, (_, byte) => {
  const char = String.fromCharCode(byte)
  if (/[A-Z]/.test(char)) return upper | (char > 'F' ? behindF : 0)
  if (/[a-z]/.test(char)) return lower | (char > 'f' ? behindF : 0)
  return /[\d\s=]/.test(char) ? 0 : other
})

/** Decodes a run in each alphabet that has all of its characters. Most runs are of base64, and soon show it. */
function listBase32(source: Source, run: Base64Run): (() => Generator<Buffer>)[] {
  if (run.chars < minBase32Chars) return []
  let found = 0
  let fitting = alphabets
  for (const piece of listPieces(source, run.ranges)) {
    for (let at = 0; at < piece.length; at++) {
      found |= charKinds[piece[at] as number] as number
      if ((found & other) !== 0 || (found & (upper | lower)) === (upper | lower)) return []
    }
    fitting = fitting.filter((values) => piece.every((byte) => values[byte] !== none))
  }
  if (isHex(source, run)) return []
  return fitting.map((values) => () => decodeBase32(values, listPieces(source, run.ranges)))
}

/** Letters behind F. Half of the characters are such letters, or less where a file has many zeros. */
const minLetterShare = 1 / 32

/** Whether a run is of hexadecimal digits, which are read by themselves. A word beside them is no part of base32. */
function isHex(source: Source, { ranges }: Base64Run): boolean {
  const long = ranges.filter(({ start, end }) => end - start >= minLineChars)
  let chars = 0
  let letters = 0
  for (const piece of listPieces(source, long.length === 0 ? ranges : long)) {
    chars += piece.length
    for (let at = 0; at < piece.length; at++)
      if (((charKinds[piece[at] as number] as number) & behindF) !== 0) letters++
  }
  return letters < chars * minLetterShare
}

/** Decodes base32. Characters that do not make a whole byte at the end are left out. */
function* decodeBase32(values: Uint8Array, pieces: Iterable<Buffer>): Generator<Buffer> {
  let bits = 0
  let count = 0
  for (const piece of pieces) {
    const out = Buffer.allocUnsafe(((piece.length * 5) >> 3) + 1)
    let length = 0
    for (let at = 0; at < piece.length; at++) {
      const byte = piece[at] as number
      const value = values[byte] as number
      if (byte === pad) {
        yield out.subarray(0, length)
        return
      }
      if (value >= filler) continue
      bits = ((bits << 5) | value) & 0xfff
      count += 5
      if (count < 8) continue
      count -= 8
      out[length++] = (bits >> count) & 0xff
    }
    yield out.subarray(0, length)
  }
}
