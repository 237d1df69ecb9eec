import { minBase32Chars, minLineChars } from '../../../../domain/content/base64-text.ts'
import { listPieces, type Source } from '../source.ts'
import type { Base64Run } from './base64-runs.ts'

const none = 255
const filler = 254

/** The alphabets of RFC 4648, in which programs ignore the case, and what stands between and behind the characters. */
const alphabets = ['ABCDEFGHIJKLMNOPQRSTUVWXYZ234567', '0123456789ABCDEFGHIJKLMNOPQRSTUV'].map((letters) => {
  const values = new Uint8Array(256).fill(none)
  for (const char of ' \t\r\n\v\f=') values[char.charCodeAt(0)] = filler
  for (const [value, letter] of [...letters].entries())
    for (const char of [letter, letter.toLowerCase()]) values[char.charCodeAt(0)] = value
  return values
})
const pad = 0x3d
const upper = 1
const lower = 2
const behindF = 4
const other = 8

const kinds = Uint8Array.from({ length: 256 }, (_, byte) => {
  const char = String.fromCharCode(byte)
  if (/[A-Z]/.test(char)) return upper | (char > 'F' ? behindF : 0)
  if (/[a-z]/.test(char)) return lower | (char > 'f' ? behindF : 0)
  return /[\d\s=]/.test(char) ? 0 : other
})

/** Decodes a run in each alphabet that has all of its characters. Most runs are of base64, and soon show it. */
export function listBase32(source: Source, run: Base64Run): (() => Generator<Buffer>)[] {
  if (run.chars < minBase32Chars) return []
  let found = 0
  let fitting = alphabets
  for (const piece of listPieces(source, run.ranges)) {
    for (let at = 0; at < piece.length; at++) {
      found |= kinds[piece[at] as number] as number
      if ((found & other) !== 0 || (found & (upper | lower)) === (upper | lower)) return []
    }
    fitting = fitting.filter((values) => piece.every((byte) => values[byte] !== none))
  }
  if (isHex(source, run)) return []
  return fitting.map((values) => () => decode(values, listPieces(source, run.ranges)))
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
    for (let at = 0; at < piece.length; at++) if (((kinds[piece[at] as number] as number) & behindF) !== 0) letters++
  }
  return letters < chars * minLetterShare
}

/** Decodes base32. Characters that do not make a whole byte at the end are left out. */
function* decode(values: Uint8Array, pieces: Iterable<Buffer>): Generator<Buffer> {
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
