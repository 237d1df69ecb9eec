import type { Source } from '../source.ts'
import { hasControls } from './text-lines.ts'

const pieceBytes = 2 ** 20

/** The end of the text that content begins with: the start of the line in which the first control character stands. */
export function findTextEnd(source: Source): number {
  let at = 0
  for (const piece of source.pieces(0, source.bytes)) {
    if (hasControls(piece)) return findBinaryStart(source, at)
    at += piece.length
  }
  return at
}

function findBinaryStart(source: Source, from: number): number {
  const piece = source.read(from, from + pieceBytes)
  let low = 0
  let high = piece.length
  while (low < high) {
    const middle = (low + high) >> 1
    if (hasControls(piece.subarray(0, middle + 1))) high = middle
    else low = middle + 1
  }
  const lineEnd = piece.subarray(0, low).lastIndexOf(0x0a)
  return from + (lineEnd === -1 ? 0 : lineEnd + 1)
}
