/** Text whose characters have two or four bytes each. */
export type WideText = {
  /** The bytes of a character. */
  unit: 2 | 4
  isLittleEndian: boolean
  /** Where the text begins, behind its byte order mark if it has one. */
  start: number
}

const sampleChars = 64

/** Recognises UTF-16 and UTF-32 by a byte order mark, or UTF-16 by Latin letters, of which every second byte is zero. */
export function findWideText(head: Buffer): WideText | undefined {
  const found = findMark(head) ?? findLatin(head)
  return found !== undefined && isText(head, found) ? found : undefined
}

function findMark(head: Buffer): WideText | undefined {
  const [a, b, c, d] = head
  if (a === 0xff && b === 0xfe) {
    return c === 0 && d === 0
      ? { unit: 4, isLittleEndian: true, start: 4 }
      : { unit: 2, isLittleEndian: true, start: 2 }
  }
  if (a === 0xfe && b === 0xff) return { unit: 2, isLittleEndian: false, start: 2 }
  return a === 0 && b === 0 && c === 0xfe && d === 0xff ? { unit: 4, isLittleEndian: false, start: 4 } : undefined
}

/** Without a mark, a few characters could be chance. */
const minLatinChars = 16

function findLatin(head: Buffer): WideText | undefined {
  if (head.length < 2 * minLatinChars) return undefined
  const isLittleEndian = head[1] === 0
  if (!isLittleEndian && head[0] !== 0) return undefined
  const found: WideText = { unit: 2, isLittleEndian, start: 0 }
  for (let char = 0; char < minLatinChars; char++) if (readChar(head, 2 * char, found) > 0x7e) return undefined
  return found
}

function isText(head: Buffer, text: WideText): boolean {
  const end = Math.min(head.length, text.start + sampleChars * text.unit)
  for (let at = text.start; at + text.unit <= end; at += text.unit)
    if (isControl(readChar(head, at, text))) return false
  return text.start + text.unit <= end
}

/** A character that no text has. */
const isControl = (char: number) => char < 0x07 || (char > 0x0d && char < 0x20 && char !== 0x1b)

/** Reads a character that is whole. */
export function readChar(bytes: Buffer, at: number, { unit, isLittleEndian }: WideText): number {
  if (unit === 2) return isLittleEndian ? bytes.readUInt16LE(at) : bytes.readUInt16BE(at)
  return isLittleEndian ? bytes.readUInt32LE(at) : bytes.readUInt32BE(at)
}
