import { isUtf8 } from 'node:buffer'

/** Text: its charset, and its beginning in a form that patterns can read. `isWhole` when that beginning is all of it. */
export type Text = { charset: string; start: string; isWhole: boolean }

/** Everything that tells kinds of text apart stands in the first lines. */
const startBytes = 8192

/** Undefined when the bytes are not text. `isCut`: more bytes follow, so the last character may be incomplete. */
export function findText(head: Buffer, isCut: boolean): Text | undefined {
  const marked = findMarked(head, isCut)
  if (marked !== undefined) return marked
  const seen = collectClasses(head)
  if ((seen & control) !== 0) return findUnmarkedUtf16(head, isCut)
  const charset = findEightBitCharset(head, seen, isCut)
  return newText(charset, head, 0, isCut, (bytes) => bytes.toString('latin1'))
}

const plain = 1
const control = 2
const high = 4
/** 0x80 to 0x9f: control characters in ISO 8859, quotes and dashes in Windows code pages. */
const windows = 8

const classes = Uint8Array.from({ length: 256 }, (_, byte) => {
  if (byte >= 0xa0) return high
  if (byte >= 0x80) return windows
  // Bell to carriage return, and escape, stand in logs and terminal recordings.
  return (byte >= 0x20 && byte !== 0x7f) || (byte >= 0x07 && byte <= 0x0d) || byte === 0x1b ? plain : control
})

const chunkBytes = 1024

/**
 * One table look-up per byte (0.8 ns). Binary content soon has a control character, which ends it; asked for after each
 * byte instead of each chunk, that question takes longer than the look-up.
 */
function collectClasses(head: Buffer): number {
  let seen = 0
  for (let at = 0; at < head.length && (seen & control) === 0; at += chunkBytes) {
    const end = Math.min(head.length, at + chunkBytes)
    for (let i = at; i < end; i++) seen |= classes[head[i] as number] as number
  }
  return seen
}

function findEightBitCharset(head: Buffer, seen: number, isCut: boolean): string {
  if (seen === plain) return 'us-ascii'
  if (isUtf8(isCut ? withoutCutCharacter(head) : head)) return 'utf-8'
  return (seen & windows) === 0 ? 'iso-8859-1' : 'windows-1252'
}

/** Steps back over at most three trailing bytes to the start of a character that does not fit any more. */
function withoutCutCharacter(head: Buffer): Buffer {
  for (let back = 1; back <= Math.min(4, head.length); back++) {
    const byte = head[head.length - back] as number
    if (byte < 0x80) break
    if (byte < 0xc0) continue
    const length = byte >= 0xf0 ? 4 : byte >= 0xe0 ? 3 : 2
    return length > back ? head.subarray(0, head.length - back) : head
  }
  return head
}

/** A byte order mark completes it, unless the rest contradicts: `ff fe` also begins MPEG frames. */
function findMarked(head: Buffer, isCut: boolean): Text | undefined {
  const [a, b, c, d] = head
  if (a === 0xef && b === 0xbb && c === 0xbf)
    return (collectClasses(head) & control) === 0 && isUtf8(isCut ? withoutCutCharacter(head) : head)
      ? newText('utf-8', head, 3, isCut, (bytes) => bytes.toString('latin1'))
      : undefined
  if (a === 0xff && b === 0xfe && c === 0 && d === 0) return checked(newText('utf-32le', head, 4, isCut, toUtf32(0)))
  if (a === 0 && b === 0 && c === 0xfe && d === 0xff) return checked(newText('utf-32be', head, 4, isCut, toUtf32(3)))
  if (a === 0xff && b === 0xfe) return checked(newText('utf-16le', head, 2, isCut, toUtf16le))
  if (a === 0xfe && b === 0xff) return checked(newText('utf-16be', head, 2, isCut, toUtf16be))
  return undefined
}

/** Windows programs write Latin text so: every second byte is zero. */
function findUnmarkedUtf16(head: Buffer, isCut: boolean): Text | undefined {
  if (head.length < 4 || head.length % 2 !== 0) return undefined
  if (isLatinPair(head, 0, 1)) return checked(newText('utf-16le', head, 0, isCut, toUtf16le))
  if (isLatinPair(head, 1, 0)) return checked(newText('utf-16be', head, 0, isCut, toUtf16be))
  return undefined
}

const isLatinPair = (head: Buffer, letters: number, zeros: number) =>
  head
    .subarray(0, 1024)
    .every((byte, i) => (i % 2 === zeros ? byte === 0 : i % 2 !== letters || classes[byte] === plain))

/** No unpaired surrogate, no NUL or other control character in what was decoded. */
const checked = (text: Text): Text | undefined =>
  text.start.isWellFormed() && !/[\x00-\x06\x0e-\x1a\x1c-\x1f\x7f\ufffd-\uffff]/.test(text.start) ? text : undefined

function newText(charset: string, head: Buffer, from: number, isCut: boolean, decode: (bytes: Buffer) => string): Text {
  const end = Math.min(head.length, from + startBytes)
  return { charset, start: decode(head.subarray(from, end)), isWhole: !isCut && end === head.length }
}

const toUtf16le = (bytes: Buffer) => withoutHalf(bytes.subarray(0, bytes.length & ~1).toString('utf16le'))

const toUtf16be = (bytes: Buffer) =>
  withoutHalf(
    Buffer.from(bytes.subarray(0, bytes.length & ~1))
      .swap16()
      .toString('utf16le'),
  )

/** The cut may fall between the halves of a pair. */
const withoutHalf = (text: string) => (/[\ud800-\udbff]$/.test(text) ? text.slice(0, -1) : text)

/** Only what Latin-1 holds matters to the patterns; the rest becomes a letter that none of them knows. */
const toUtf32 = (low: 0 | 3) => (bytes: Buffer) => {
  let text = ''
  for (let i = 0; i + 4 <= bytes.length; i += 4) {
    const code = low === 0 ? bytes.readUInt32LE(i) : bytes.readUInt32BE(i)
    text += code > 0x10ffff ? '\0' : code < 0x100 ? String.fromCharCode(code) : '\u0100'
  }
  return text
}
