import type { Source } from '../reader.ts'
import { isLineStart, listMatches, readLine } from './text-lines.ts'

export type Span = { start: number; end: number }

type Delimiter = Span & {
  /** The start of the line end before it, which belongs to the delimiter. */
  before: number
  /** Every program takes the line for a delimiter. */
  isPlain: boolean
}

/** Parts beyond this number are not read. */
const maxDelimiters = 10_000

/** The ways in which programs divide a body by a boundary. */
export function splitParts(source: Source, body: Span, boundary: string): { parts: Span[][]; isCut: boolean } {
  const delimiters = listDelimiters(source, body, boundary)
  const isCut = delimiters.length >= maxDelimiters
  const plain = delimiters.filter(({ isPlain }) => isPlain)
  const splits = plain.length === delimiters.length || plain.length === 0 ? [delimiters] : [plain, delimiters]
  return { parts: splits.map((split) => toParts(split, body.end)), isCut }
}

/** The parts between delimiters. Some programs read on behind the last one, so that part is given as well. */
const toParts = (delimiters: Delimiter[], end: number): Span[] =>
  delimiters.map((delimiter, i) => ({
    start: Math.min(end, delimiter.end),
    end: Math.max(Math.min(end, delimiter.end), delimiters[i + 1]?.before ?? end),
  }))

function listDelimiters(source: Source, body: Span, boundary: string): Delimiter[] {
  const pattern = Buffer.from(`--${boundary}`, 'latin1')
  const found: Delimiter[] = []
  let at = source.find(pattern, body.start, body.end)
  while (at !== -1 && found.length < maxDelimiters) {
    let next = at + 1
    if (at === body.start || isLineStart(source, at)) {
      const rest = readLine(source, at + pattern.length, body.end)
      const lineEnd = at + pattern.length + rest.length
      const before = source.read(Math.max(body.start, at - 2), at).toString('latin1')
      const breakBytes = before.endsWith('\r\n') ? 2 : at === body.start ? 0 : 1
      const after = source.read(lineEnd, lineEnd + 2).toString('latin1')
      const end = lineEnd + (after === '\r\n' ? 2 : after === '' ? 0 : 1)
      const isPlain = /^(?:--)?[ \t]*$/.test(rest) && !(before.endsWith('\r') && after.startsWith('\n'))
      found.push({ start: at, end, before: at - breakBytes, isPlain })
      next = Math.max(next, lineEnd)
    }
    at = source.find(pattern, next, body.end)
  }
  return found
}

/** The boundary of a body whose header names none: tolerant programs take the first line that begins with dashes. */
export function guessBoundary(source: Source, { start, end }: Span): string[] {
  const text = source.read(start, Math.min(end, start + 4096)).toString('latin1')
  const line = /(?:^|[\r\n])--([^\r\n]+)/.exec(text)?.[1]?.trimEnd()
  return line === undefined ? [] : [line]
}

/** The messages of a mailbox, each of which begins with a line of the form `From address date`. */
export function listMessages(source: Source, start: number): { messages: Span[]; isCut: boolean } {
  const starts: number[] = []
  let at = start
  while (at !== -1 && starts.length < maxDelimiters) {
    if (isLineStart(source, at)) starts.push(at)
    at = source.find(postmark, at + 1)
  }
  const messages = starts.map((from, i) => ({
    start: from + readLine(source, from, source.bytes).length,
    end: starts[i + 1] ?? source.bytes,
  }))
  return { messages: messages.map((span) => ({ ...span, start: skipLineEnd(source, span.start) })), isCut: at !== -1 }
}

function skipLineEnd(source: Source, at: number): number {
  const end = source.read(at, at + 2).toString('latin1')
  return at + (end === '\r\n' ? 2 : end === '' ? 0 : 1)
}

const postmark = Buffer.from('From ')

const strayField = /(?<=^|[\r\n])(?:content-transfer-encoding|content-type[ \t]*:[ \t]*multipart)/gi
const longestField = 64

/** Positions of lines with a field of MIME, wherever they stand. */
export const findMimeFields = (source: Source) => listMatches(source, strayField, longestField)

/** The start of the block of header lines that a field at `at` belongs to. */
export function findHeaderStart(source: Source, at: number, from: number): number {
  const start = Math.max(from, at - 8192)
  const lines = source
    .read(start, at)
    .toString('latin1')
    .split(/(?<=\r\n|\r(?!\n)|\n)/)
  let headerAt = at
  for (const line of lines.toReversed()) {
    if (!/^(?:[^\s:]+[ \t]*:|[ \t]+\S)/.test(line)) break
    headerAt -= line.length
  }
  return headerAt
}
