import type { Members, Range, Reader, Reading, Source } from '../reader.ts'
import {
  accountForText,
  beginsAsDamagedText,
  beginsAsDocument,
  type EncodedData,
  findTextEnd,
  giveEncoded,
  hasTextHead,
  type Line,
  listLines,
} from './text-lines.ts'
import { hexValue } from './transfer-encodings.ts'

/** Reads bytes that text writes as hexadecimal digits, as a dump of xxd, hexdump or od, or as escapes in a string. */
export const hexTextReader: Reader = {
  name: 'hexadecimal text',
  recognizes: (source) => beginsAsDamagedText(source) && !beginsAsDocument(source),
  read: readHexText,
}

async function readHexText(source: Source, members: Members): Promise<Reading> {
  const textEnd = findTextEnd(source)
  const end = hasTextHead(source) ? source.bytes : textEnd
  const hasData = await giveEncoded(members, '[further digits]', () => listEncoded(source, end))
  return { accounted: hasData ? accountForText(textEnd) : [], doubts: [] }
}

function* listEncoded(source: Source, end: number): Generator<EncodedData> {
  for (const run of listHexRuns(source, end))
    yield { path: `[${run.kind} at ${getStart(run)}]`, decode: () => decodeHexRun(source, run) }
}

const getStart = ({ ranges: [first] }: HexRun) => first?.start ?? 0

/** Bytes that a text writes as digits: the ranges that hold the digits, and how they are written. */
type HexRun = { kind: 'digits' | 'escapes'; ranges: Range[]; bytes: number }

/** Hashes have up to 64 bytes, and fill whole lists. */
const minBytes = 65
/** Escapes are hardly hashes. */
const minEscapes = 32
const minChunkDigits = 32

/** A line of a dump by xxd: its place, and groups of digits with one blank between them. */
const dumpLine = /^([ \t]*(?:0x)?[0-9a-f]{1,16}:[ \t]*)([0-9a-f]{2}(?:[ \t]?[0-9a-f])*)/i
/** A line of a dump by hexdump or od: its place, and bytes with one or two blanks between them. */
const placedLine = /^([ \t]*[0-9a-f]{6,16}[ \t]{1,4})((?:[0-9a-f]{2}[ \t]{1,2}){0,63}[0-9a-f]{2})(?![0-9a-f])/i
/** A line of an S-record file: its type, length and address, and its bytes in front of a checksum. */
const recordLine = /^(S(?:1[0-9a-f]{6}|2[0-9a-f]{8}|3[0-9a-f]{10}))((?:[0-9a-f]{2})+)(?=[0-9a-f]{2}[ \t]*$)/i
const wholeLine = /^[0-9a-f \t]*[0-9a-f][0-9a-f \t]*$/i
const digits = /[0-9a-f]{2}(?:[ \t]?[0-9a-f])+/gi
const longDigits = /[0-9a-f]{2}(?:[ \t]?[0-9a-f]{2}){15}/i
/** A byte that a string writes as an escape, as the source of an expression. */
export const byteEscape = '\\\\(?:x[0-9a-f]{2}|u00[0-9a-f]{2}|0?[0-3][0-7]{2})'
const escapes = new RegExp(`(?:${byteEscape}){4,}`, 'gi')
const escapedByte = /\\(?:x([0-9a-f]{2})|u00([0-9a-f]{2})|0?([0-3][0-7]{2}))/gi

/** Finds digits in the lines before `end`. Lines of digits alone, of a dump, or of escapes belong together. */
function* listHexRuns(source: Source, end: number): Generator<HexRun> {
  const complete: HexRun[] = []
  const open: Record<string, HexRun> = {}
  const close = (...names: string[]) => {
    for (const name of names) {
      const run = open[name]
      if (run !== undefined && run.bytes >= (run.kind === 'escapes' ? minEscapes : minBytes)) complete.push(run)
      delete open[name]
    }
  }
  const extend = (name: string, range: Range, bytes: number, kind: HexRun['kind'] = 'digits') => {
    const run = open[name] ?? { kind, ranges: [], bytes: 0 }
    run.ranges.push(range)
    run.bytes += bytes
    open[name] = run
  }

  function takeDump(name: 'dump' | 'placed' | 'record', pattern: RegExp, { start }: Line, text: string): boolean {
    const dump = pattern.exec(text)
    if (dump === null) {
      // A star stands for lines that repeat the one before.
      if (text.trim() !== '*') close(name)
      return false
    }
    const [, place = '', group = ''] = dump
    // The text of a damaged line may follow its digits: no line has more bytes than the first.
    const first = open[name]?.ranges[0]
    const data = first === undefined ? group : group.slice(0, first.end - first.start)
    extend(name, { start: start + place.length, end: start + place.length + data.length }, countDigits(data) / 2)
    return true
  }

  /** A run goes on only where digits end one line and begin the next. */
  function takeDigits({ start }: Line, text: string) {
    if (wholeLine.test(text)) {
      extend('digits', { start, end: start + text.length }, countDigits(text) / 2)
      return
    }
    const hasLong = longDigits.test(text)
    const first = open.digits === undefined ? null : /^[ \t]*[0-9a-f]+/i.exec(text)
    if (!hasLong && first === null) {
      close('digits')
      return
    }
    for (const { 0: chunk, index } of text.matchAll(digits)) {
      if (index > (first?.[0].length ?? 0)) close('digits')
      if (open.digits === undefined && chunk.length < minChunkDigits) continue
      extend('digits', { start: start + index, end: start + index + chunk.length }, countDigits(chunk) / 2)
      if (index + chunk.length < text.length) close('digits')
    }
  }

  function takeEscapes({ start }: Line, text: string) {
    const chunks = text.includes('\\') ? [...text.matchAll(escapes)] : []
    if (chunks.length !== 1) close('escapes')
    for (const { 0: chunk, index } of chunks) {
      const range = { start: start + index, end: start + index + chunk.length }
      extend('escapes', range, chunk.match(escapedByte)?.length ?? 0, 'escapes')
      if (chunks.length > 1) close('escapes')
    }
  }

  for (const line of listLines(source, 0, end)) {
    const text = line.bytes.toString('latin1')
    if (takeDump('dump', dumpLine, line, text)) close('digits')
    else takeDigits(line, text)
    takeDump('placed', placedLine, line, text)
    takeDump('record', recordLine, line, text)
    takeEscapes(line, text)
    yield* complete.splice(0)
  }
  close('dump', 'placed', 'record', 'digits', 'escapes')
  yield* complete.splice(0)
}

const countDigits = (text: string) => text.replace(/[ \t]+/g, '').length

/** Decodes a run. A last digit that is half a byte is left out. */
function* decodeHexRun(source: Source, { kind, ranges }: HexRun): Generator<Buffer> {
  let half = -1
  for (const { start, end } of ranges) {
    const text = source.read(start, end)
    if (kind === 'escapes') {
      const found = [...text.toString('latin1').matchAll(escapedByte)]
      yield Buffer.from(
        found.map(([, x, u, octal]) => Number.parseInt(x ?? u ?? octal ?? '', octal === undefined ? 16 : 8)),
      )
      continue
    }
    const out = Buffer.alloc((text.length + 1) >> 1)
    let length = 0
    for (const char of text) {
      const value = hexValue(char)
      if (value < 0) continue
      if (half >= 0) out[length++] = half * 16 + value
      half = half < 0 ? value : -1
    }
    yield out.subarray(0, length)
  }
}
