import type { Source } from '../reader.ts'
import { listLines } from './text-lines.ts'

/** Encoded lines between their first line and their end. */
export type UuData = {
  start: number
  end: number
  /** Programs differ about it: there are lines that hold no data, or data behind a line of length zero. */
  isOdd: boolean
  hasData: boolean
  /** Lines hold data in the alphabet of xxencode. */
  hasXx: boolean
}

/**
 * How a decoder reads lines. `skip` passes over lines that hold no data, `stop` ends there, `mask` takes any byte for a
 * character, by its lower six bits, and `xx` reads the alphabet of xxencode and passes over other lines.
 */
export type UuRule = 'skip' | 'stop' | 'mask' | 'xx'

const xxAlphabet = '+-0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'
const none = 64
const newValues = () => new Uint8Array(256).fill(none)
const uuValues = newValues()
for (let char = 0x20; char <= 0x60; char++) uuValues[char] = (char - 0x20) & 0x3f
const maskValues = newValues().map((_, char) => (char - 0x20) & 0x3f)
const xxValues = newValues()
for (let value = 0; value < 64; value++) xxValues[xxAlphabet.charCodeAt(value)] = value
const valuesByRule: Record<UuRule, Uint8Array> = { skip: uuValues, stop: uuValues, mask: maskValues, xx: xxValues }

const isEndLine = (bytes: Buffer) => bytes.toString('latin1', 0, 8).trim() === 'end'
const beginsAgain = (bytes: Buffer) => /^begin[ -]/.test(bytes.toString('latin1', 0, 8))

const countChars = (length: number) => Math.ceil((length * 4) / 3)

/** The number of bytes that a line announces, or undefined when it is no line of data. */
function getLength(line: Buffer, values: Uint8Array): number | undefined {
  const length = values[line[0] ?? 0] as number
  if (line.length === 0 || length === none) return undefined
  const last = Math.min(countChars(length), line.length - 1)
  for (let at = 1; at <= last; at++) if (values[line[at] as number] === none) return undefined
  return length
}

/** Programs append up to three characters to a line, such as a checksum, and mail removes blanks at its end. */
const maxSurplus = 3

/** Whether a line has as many characters as it announces, so that it is hardly text. */
function isFullLine(line: Buffer, values: Uint8Array): boolean {
  const length = getLength(line, values) ?? 0
  const surplus = line.length - 1 - countChars(length)
  return length > 0 && surplus >= 0 && surplus <= maxSurplus
}

/** Lines that may stand between the first line and the data. */
const maxLinesBefore = 5

/** Finds the end of encoded data whose first line of data is at `start`: its last line, or the start of other data. */
export function findUuData(source: Source, start: number): UuData {
  const data: UuData = { start, end: source.bytes, isOdd: false, hasData: false, hasXx: false }
  let isOver = false
  let lines = 0
  for (const { bytes, start: lineStart, next } of listLines(source, start, source.bytes)) {
    if (isEndLine(bytes)) return { ...data, end: next }
    if (beginsAgain(bytes)) return { ...data, end: lineStart }
    const length = getLength(bytes, uuValues)
    if (length === undefined || (isOver && length > 0)) data.isOdd = true
    if (length === 0) isOver = true
    if (length === undefined ? isFullLine(bytes, maskValues) : length > 0) data.hasData = true
    if (length === undefined && isFullLine(bytes, xxValues)) data.hasXx = true
    // Text without any data is not searched to its end.
    if (!data.hasData && !data.hasXx && ++lines > maxLinesBefore) return { ...data, end: lineStart }
  }
  return data
}

/** The rules by which programs read the data to different bytes; one for well-formed data. */
export function listUuRules({ isOdd, hasXx }: UuData): UuRule[] {
  return ['skip', ...(isOdd ? (['stop', 'mask'] as const) : []), ...(hasXx ? (['xx'] as const) : [])]
}

/** Decodes the lines of data by a rule. */
export function* decodeUu(source: Source, data: UuData, rule: UuRule): Generator<Buffer> {
  const values = valuesByRule[rule]
  for (const { bytes } of listLines(source, data.start, data.end)) {
    if (isEndLine(bytes)) return
    const length = getLength(bytes, values)
    if (length !== undefined && length > 0) yield decodeLine(bytes, length, values)
    else if (rule === 'stop' || rule === 'mask') return
  }
}

function decodeLine(bytes: Buffer, length: number, values: Uint8Array): Buffer {
  const out = Buffer.alloc(Math.ceil(length / 3) * 3)
  for (let group = 0; group * 3 < length; group++) {
    let bits = 0
    for (let i = 1; i <= 4; i++) {
      const char = bytes[group * 4 + i]
      bits = (bits << 6) | (char === undefined ? 0 : (values[char] as number) & 0x3f)
    }
    out.writeUIntBE(bits, group * 3, 3)
  }
  return out.subarray(0, length)
}

const startsWith = (bytes: Buffer, text: string) => bytes.toString('latin1', 0, text.length) === text

/** The end of yEnc data, which is the start of its last line, or of the first line of other data. */
export const findYencEnd = (source: Source, start: number): number =>
  Math.min(...yencEnds.map((mark) => findLine(source, mark, start)))

const yencEnds = ['=yend', '=ybegin '].map((text) => Buffer.from(text))

/** The start of the first line that begins with the mark, or the end of the content. */
function findLine(source: Source, mark: Buffer, start: number): number {
  let at = source.find(mark, start)
  while (at > 0 && !/[\r\n]/.test(source.read(at - 1, at).toString('latin1'))) at = source.find(mark, at + 1)
  return at === -1 ? source.bytes : at
}

/** Decodes yEnc: each byte is shifted by 42, and a few are escaped with an equals sign. */
export function* decodeYenc(source: Source, start: number, end: number): Generator<Buffer> {
  for (const { bytes } of listLines(source, start, end)) {
    if (startsWith(bytes, '=ypart ')) continue
    const out = Buffer.allocUnsafe(bytes.length)
    let length = 0
    for (let at = 0; at < bytes.length; at++) {
      const byte = bytes[at] as number
      const shift = byte === 0x3d && at + 1 < bytes.length ? 106 : 42
      if (shift === 106) at++
      out[length++] = ((bytes[at] as number) - shift) & 0xff
    }
    yield out.subarray(0, length)
  }
}
