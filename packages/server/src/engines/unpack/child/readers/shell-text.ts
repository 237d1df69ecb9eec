import { canHoldContent } from '../../../../domain/content/container.ts'
import type { Source } from '../source.ts'
import { hasControls, type Line, listLines } from './text-lines.ts'
import { decodeBase64 } from './transfer-encodings.ts'

/** Content that a shell script carries: its path, and its bytes. */
export type Carried = { path: string; pieces: Iterable<Buffer> }

const headBytes = 65_536
/** Scripts with more are not ordinary scripts. */
const maxDocuments = 5000
/** Here-documents that are text were scanned with the script, except those that are short enough to be a whole file. */
const maxShortText = 4096

/** Programs that write or decode a here-document. */
const writers =
  /\b(?:sed|cat|tee|dd|base64|b64decode|uudecode|openssl|gzip|gunzip|bunzip2|xz|unxz|tar|xxd|perl|python\d?)\b/

/** Whether the head is that of a script that writes a here-document, such as a shell archive. */
export function hasHereDocuments(head: Buffer): boolean {
  const text = head.toString('latin1', 0, headBytes)
  return /<<-?[ \t]*['"\\]?\w/.test(text) && writers.test(text)
}

type HereDocument = { path: string; word: string; prefix: string; isTabbed: boolean; isBase64: boolean; start: number }

/** Yields what here-documents in a shell script hold. */
export function* listHereDocuments(source: Source): Generator<Carried> {
  let document: HereDocument | undefined
  let count = 0
  for (const line of listLines(source, 0, source.bytes)) {
    if (document === undefined) {
      document = findDocument(source, line)
      if (document !== undefined && ++count > maxDocuments) return
      continue
    }
    const text = line.bytes.toString('latin1')
    if ((document.isTabbed ? text.replace(/^\t+/, '') : text) !== document.word) continue
    yield* listReadings(source, document, line.start)
    document = undefined
  }
  if (document !== undefined) yield* listReadings(source, document, source.bytes)
}

const opening = /<<(-?)[ \t]*(?:'([^']+)'|"([^"]+)"|\\?([\w!.-]+))/

/** A line that begins a here-document for a program that writes or decodes it. */
function findDocument(source: Source, line: Line): HereDocument | undefined {
  if (!line.bytes.includes('<<')) return undefined
  const text = line.bytes.toString('latin1')
  const match = opening.exec(text)
  if (match === null || line.bytes.length > maxShortText || !writers.test(text)) return undefined
  const word = match[2] ?? match[3] ?? match[4] ?? ''
  // Other languages write the same signs: a here-document has a last line.
  if (source.find(Buffer.from(word, 'latin1'), line.next) === -1) return undefined
  const prefix = /\bsed\b.*?s(.)\^(.{1,8}?)\1\1/.exec(text)?.[2] ?? ''
  return {
    path: />[ \t]*["']?([^\s"'<>|&;]+)/.exec(text)?.[1] ?? `[here-document at ${line.start}]`,
    word,
    prefix,
    isTabbed: match[1] === '-',
    isBase64: /base64|b64|openssl/i.test(text),
    start: line.next,
  }
}

function* listReadings(source: Source, document: HereDocument, end: number): Generator<Carried> {
  const { path, prefix, start, isBase64, isTabbed } = document
  const head = source.read(start, Math.min(end, start + headBytes))
  if (prefix !== '') yield { path, pieces: withoutPrefix(source, start, end, prefix) }
  if (isTabbed) yield { path, pieces: withoutPrefix(source, start, end, '\t') }
  if (isBase64) yield { path, pieces: decodeBase64(source.pieces(start, end)) }
  const isContent = end - start <= maxShortText || hasControls(head) || canHoldContent(head)
  if (prefix === '' && !isBase64 && isContent) yield { path, pieces: source.pieces(start, end) }
}

function* withoutPrefix(source: Source, start: number, end: number, prefix: string): Generator<Buffer> {
  const mark = Buffer.from(prefix, 'latin1')
  for (const line of listLines(source, start, end)) {
    const bytes = source.read(line.start, line.next)
    yield bytes.subarray(0, mark.length).equals(mark) ? bytes.subarray(mark.length) : bytes
  }
}
