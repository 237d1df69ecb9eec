import { canHoldContent } from '../../../../domain/content/container.ts'
import type { Source } from '../reader.ts'
import { findLineEnd, hasControls, listLines } from './text-lines.ts'
import { decodeBase64, listBase64Rules } from './transfer-encodings.ts'

/** Content that a shell script carries: its path, and its bytes. */
type Carried = { path: string; pieces: Iterable<Buffer> }

const headBytes = 65_536
/** Scripts with more are not ordinary scripts. */
const maxDocuments = 5000
/** Last lines that are searched for: at most so many, and fewer in long content, so that the work stays linear. */
const maxWords = 500
const minWords = 16
const maxSearchedBytes = 2 ** 30
/** Documents without a last line, which reach to the end of the script. A script has one; other signs look like more. */
const maxOpen = 2
/** Here-documents that are text were scanned with the script, except those that are short enough to be a whole file. */
const maxShortText = 4096
/** Lines of a command that are read before the one with the here-document. */
const maxCommandChars = 8192

/** Programs that write or decode a here-document. */
const writers =
  /\b(?:sed|g?awk|cut|cat|tee|dd|base64|b64decode|uudecode|openssl|gzip|gunzip|bunzip2|xz|unxz|tar|xxd|perl|python\d?)\b/

/** Whether the head is that of a script that writes a here-document, such as a shell archive. */
export function hasHereDocuments(head: Buffer): boolean {
  const text = head.toString('latin1', 0, headBytes)
  return /<<-?[ \t]*['"\\]?\w/.test(text) && (text.startsWith('#!') || writers.test(text))
}

type HereDocument = {
  path: string
  command: string
  /** Shells remove the tabs at the start of each line. */
  isTabbed: boolean
  /** Shells remove some backslashes, because the word has no quotes. */
  isEscaped: boolean
  start: number
  end: number
}

/** Yields what here-documents in a shell script hold, those within other ones included. */
export function* listHereDocuments(source: Source): Generator<Carried> {
  const findEnd = newEndFinder(source)
  let before = ''
  let [count, open] = [0, 0]
  for (const line of listLines(source, 0, source.bytes)) {
    const isContinued = line.bytes.at(-1) === backslash
    const hasOpening = line.bytes.includes('<<') && line.bytes.length <= maxCommandChars
    const command = hasOpening || isContinued ? before + line.bytes.toString('latin1') : ''
    before = isContinued ? `${command.slice(-maxCommandChars).slice(0, -1)} ` : ''
    let start = line.next
    for (const match of hasOpening ? line.bytes.toString('latin1').matchAll(opening) : []) {
      if (++count > maxDocuments) return
      const [, dash, quoted = ''] = match
      const word = quoted.replace(/\\(.)|['"]/g, '$1')
      const isTabbed = dash === '-'
      const end = findEnd(word, start, isTabbed)
      if (end === undefined && ++open > maxOpen) continue
      const path = />[ \t]*["']?([^\s"'<>|&;]+)/.exec(command)?.[1] ?? `[here-document at ${start}]`
      const document = { path, command, isTabbed, isEscaped: word === quoted, start, end: end?.start ?? source.bytes }
      yield* listReadings(source, document)
      // The next document of the same line follows.
      if (end !== undefined) start = end.next
    }
  }
}

const backslash = 0x5c
/** Two signs, and a word that is quoted in whole or in part. With three signs, the word itself is the text. */
const opening = /(?<!<)<<(-?)[ \t]*((?:'[^']*'|"[^"]*"|\\.|[\w!.@%+:,~/-])+)/g

type End = { start: number; next: number }

/** Finds the last line of a document. Its place is kept by word, so that a script is searched once for each word. */
function newEndFinder(source: Source) {
  const found = new Map<string, { from: number; end: End | undefined }>()
  const limit = Math.max(minWords, Math.min(maxWords, maxSearchedBytes / source.bytes))
  return (word: string, from: number, isTabbed: boolean): End | undefined => {
    const key = `${isTabbed} ${word}`
    const known = found.get(key)
    if (known !== undefined && from >= known.from && (known.end?.start ?? source.bytes) >= from) return known.end
    if (known === undefined && found.size >= limit) return undefined
    const end = searchEnd(source, Buffer.from(word, 'latin1'), from, isTabbed)
    found.set(key, { from, end })
    return end
  }
}

const maxTabs = 100

/** Searches the word behind a line end or a tab, so that only lines that begin with the word are looked at. */
function searchEnd(source: Source, word: Buffer, from: number, isTabbed: boolean): End | undefined {
  const marks = isTabbed ? [findLineEnd(source, from), tab] : [findLineEnd(source, from)]
  const ends = marks.flatMap((mark) => searchLine(source, Buffer.concat([Buffer.from([mark]), word]), from) ?? [])
  return ends.toSorted((one, other) => one.start - other.start)[0]
}

const tab = 0x09

function searchLine(source: Source, marked: Buffer, from: number): End | undefined {
  for (let at = source.find(marked, from - 1); at !== -1; at = source.find(marked, at + 1)) {
    const behind = at + marked.length
    const lineEnd = /^(?:\r\n|[\r\n]|$)/.exec(source.read(behind, behind + 2).toString('latin1'))?.[0]
    const before = source.read(Math.max(from - 1, at - maxTabs), at + 1).toString('latin1')
    const tabs = /(?<=[\r\n])\t*$/.exec(before)?.[0].length
    if (tabs !== undefined && lineEnd !== undefined) return { start: at + 1 - tabs, next: behind + lineEnd.length }
  }
  return undefined
}

function* listReadings(source: Source, document: HereDocument): Generator<Carried> {
  const { path, command, start, end, isTabbed } = document
  const head = source.read(start, Math.min(end, start + headBytes))
  const isEscaped = document.isEscaped && /\\[\\$`\r\n]/.test(head.toString('latin1'))
  const readLines = () => listShellLines(source, { ...document, isEscaped })
  const readBody = isTabbed || isEscaped ? readLines : () => source.pieces(start, end)
  const changes = listLineChanges(command, head.toString('latin1', 0, firstLineBytes))
  for (const change of changes) yield { path, pieces: changeLines(readLines(), change) }
  const isBase64 = /base64|b64|openssl/i.test(command)
  for (const rule of isBase64 ? listBase64Rules(readBody()) : []) yield { path, pieces: decodeBase64(readBody(), rule) }
  const isContent = isTabbed || end - start <= maxShortText || hasControls(head) || canHoldContent(head)
  if (changes.length === 0 && !isBase64 && isContent) yield { path, pieces: readBody() }
}

const firstLineBytes = 1000

/** Yields the lines of a document with their ends, as a shell passes them on. */
function* listShellLines(source: Source, { start, end, isTabbed, isEscaped }: HereDocument): Generator<Buffer> {
  for (const line of listLines(source, start, end)) {
    const bytes = source.read(line.start, line.next)
    if (!isTabbed && !isEscaped) {
      yield bytes
      continue
    }
    const text = isTabbed ? bytes.toString('latin1').replace(/^\t+/, '') : bytes.toString('latin1')
    yield Buffer.from(isEscaped ? text.replace(/\\(?:\r?\n|([\\$`]))/g, '$1') : text, 'latin1')
  }
}

function* changeLines(lines: Iterable<Buffer>, change: (line: Buffer) => Buffer): Generator<Buffer> {
  for (const line of lines) yield change(line)
}

/** Removes the start of a line, as a program does that writes a here-document. */
type LineChange = (line: Buffer) => Buffer

const lineFeed = 0x0a
/** Characters that are removed where the command does not tell which. */
const maxGuessed = 4
const changers = /\b(?:sed|g?awk|cut|colrm|perl|python\d?|ruby)\b/
/** `s/^X//` with any delimiter. */
const substitution = /\bs([^\w\s\\])\^((?:\\.|(?!\1)[^\\]){1,200})\1/g
/** Characters that stand for others in a pattern. */
const special = /[[\].*+?$^\\(){}|]/
/** The first character that stays, as options of cut and functions of awk name it. */
const positions = /\bcut\b[^|\n]{0,40}?-[bc][ \t]*["']?(\d{1,3})-|\bsubstr\([ \t]*\$0[ \t]*,[ \t]*(\d{1,3})/g

/** The ways in which the programs of a command shorten lines; none when the command writes them as they are. */
function listLineChanges(command: string, head: string): LineChange[] {
  if (!changers.test(command)) return []
  const prefixes = new Set<string>()
  const lengths = new Set<number>()
  for (const [, , pattern = ''] of command.matchAll(substitution)) {
    if (special.test(pattern)) for (let length = 1; length <= maxGuessed; length++) lengths.add(length)
    else prefixes.add(pattern)
  }
  for (const [, column, character] of command.matchAll(positions)) lengths.add(Number(column ?? character) - 1)
  if (prefixes.size + lengths.size === 0) {
    for (let length = 1; length <= maxGuessed; length++) prefixes.add(head.slice(0, length))
  }
  return [...[...prefixes].map(removePrefix), ...[...lengths].filter((length) => length > 0).map(removeStart)]
}

function removePrefix(prefix: string): LineChange {
  const mark = Buffer.from(prefix, 'latin1')
  return (line) => (line.subarray(0, mark.length).equals(mark) ? line.subarray(mark.length) : line)
}

const removeStart =
  (length: number): LineChange =>
  (line) =>
    line.length > length ? line.subarray(length) : line.at(-1) === lineFeed ? line.subarray(-1) : empty

const empty = Buffer.alloc(0)
