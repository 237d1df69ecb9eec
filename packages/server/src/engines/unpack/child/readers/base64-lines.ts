import {
  findKinds,
  findOnlyWord,
  hasBase32Kinds,
  hasBase64Kinds,
  hasEncodedKinds,
  minBase64Chars,
  minLineChars,
} from '../../../../domain/content/base64-text.ts'
import type { Range } from '../reader.ts'
import type { Source } from '../source.ts'
import type { Base64Run } from './base64-runs.ts'
import { listLines } from './text-lines.ts'

const maxWordBytes = 64

/**
 * Finds base64 in lines of fewer than 32 characters, in the text before `end`: lines with one word each, all of one
 * length but for a shorter last one.
 */
export function* listShortLineRuns(source: Source, end: number): Generator<Base64Run> {
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
      yield* listRuns(source, { before, lines, last: length < width ? range : undefined })
      before = undefined
      lines = []
      width = length
      if (range !== undefined && length < minLineChars) before = findLastWord(source, lastLine)
    }
    if (range !== undefined && length < minLineChars) lines.push(range)
    lastLine = { start, end: start + bytes.length }
  }
  yield* listRuns(source, { before, lines })
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
function* listRuns(source: Source, { before, lines, last }: Lines): Generator<Base64Run> {
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
