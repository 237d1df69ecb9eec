import type { Source } from '../source.ts'
import { type Line, listLines } from './text-lines.ts'

/** Uuencoded data between its first line and its end. */
export type UuData = {
  start: number
  end: number
  /** Programs differ about it: there are lines that hold no data, or data behind a line of length zero. */
  isOdd: boolean
  hasData: boolean
}

const isEndLine = (bytes: Buffer) => bytes.toString('latin1', 0, 8).trim() === 'end'

/** The number of bytes that a line announces, or undefined when it is no line of data. */
function getLength(line: Buffer): number | undefined {
  const first = line[0]
  if (first === undefined || first < 0x20 || first > 0x60) return undefined
  const length = (first - 0x20) & 0x3f
  const chars = Math.ceil((length * 4) / 3)
  for (let at = 1; at <= chars && at < line.length; at++) {
    const char = line[at] as number
    if (char < 0x20 || char > 0x60) return undefined
  }
  return length
}

/** Lines that may stand between the first line and the data. */
const maxLinesBefore = 5

/** Finds the end of uuencoded data whose first line of data is at `start`. */
export function findUuData(source: Source, start: number): UuData {
  const data: UuData = { start, end: source.bytes, isOdd: false, hasData: false }
  let isOver = false
  let lines = 0
  for (const line of listLines(source, start, source.bytes)) {
    if (isEndLine(line.bytes)) return { ...data, end: line.next }
    const length = getLength(line.bytes)
    if (length === undefined || (isOver && length > 0)) data.isOdd = true
    if (length === 0) isOver = true
    if (length !== undefined && length > 0) data.hasData = true
    // Text without any data is not searched to its end.
    if (!data.hasData && ++lines > maxLinesBefore) return { ...data, end: line.start }
  }
  return data
}

/** Decodes uuencoded data. A tolerant decoder skips odd lines; others stop there. */
export function* decodeUu(source: Source, data: UuData, { isTolerant }: { isTolerant: boolean }): Generator<Buffer> {
  for (const line of listLines(source, data.start, data.end)) {
    const length = getLength(line.bytes)
    if (isEndLine(line.bytes)) return
    if (length === undefined || length === 0) {
      if (isTolerant) continue
      return
    }
    yield decodeLine(line, length)
  }
}

function decodeLine({ bytes }: Line, length: number): Buffer {
  const out = Buffer.alloc(Math.ceil(length / 3) * 3)
  for (let group = 0; group * 3 < length; group++) {
    let bits = 0
    for (let i = 1; i <= 4; i++) bits = (bits << 6) | (((bytes[group * 4 + i] ?? 0x20) - 0x20) & 0x3f)
    out.writeUIntBE(bits, group * 3, 3)
  }
  return out.subarray(0, length)
}

const startsWith = (bytes: Buffer, text: string) => bytes.toString('latin1', 0, text.length) === text

/** The end of yEnc data, which is the start of its last line. */
export function findYencEnd(source: Source, start: number): number {
  let at = source.find(yencEnd, start)
  while (at > 0 && !/[\r\n]/.test(source.read(at - 1, at).toString('latin1'))) at = source.find(yencEnd, at + 1)
  return at === -1 ? source.bytes : at
}

const yencEnd = Buffer.from('=yend')

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
