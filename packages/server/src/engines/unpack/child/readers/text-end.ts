import { isControl } from '../../../../domain/content/encoded-text.ts'
import type { Range } from '../reader.ts'
import type { Source } from '../source.ts'
import { hasControls } from './text-lines.ts'

const pieceBytes = 2 ** 20

/** The end of the text that content begins with: the start of the line in which the first control character stands. */
export function findTextEnd(source: Source): number {
  let at = 0
  for (const piece of source.pieces(0, source.bytes)) {
    if (hasControls(piece)) return at + cutText(source.read(at, at + pieceBytes)).length
    at += piece.length
  }
  return at
}

/**
 * The range of the text, which was scanned with the content itself. Where the first line has control characters there is
 * none, and a container may stand anywhere in it: nothing is accounted for, so that the content is searched for one.
 */
export const accountForText = (textEnd: number): Range[] => (textEnd > 0 ? [{ start: 0, end: textEnd }] : [])

/** The position of the first control character at `from` or later, or the end of the content. */
export function findControl(source: Source, from: number): number {
  let at = from
  for (const piece of source.pieces(from, source.bytes)) {
    const found = piece.findIndex(isControl)
    if (found !== -1) return at + found
    at += piece.length
  }
  return at
}

/** The lines before the first one with a control character. */
export function cutText(bytes: Buffer): Buffer {
  if (!hasControls(bytes)) return bytes
  let low = 0
  let high = bytes.length
  while (low < high) {
    const middle = (low + high) >> 1
    if (hasControls(bytes.subarray(0, middle + 1))) high = middle
    else low = middle + 1
  }
  return bytes.subarray(0, bytes.subarray(0, low).lastIndexOf(0x0a) + 1)
}
