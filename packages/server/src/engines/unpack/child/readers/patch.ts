import { binaryPatch } from '../../../../domain/content/encoded-text.ts'
import type { Members, Range, Reader, Reading, Source } from '../reader.ts'
import { decodeGitBinary, listGitBinary } from './git.ts'
import { accountForText, beginsAsText, findTextEnd, type Line, listLines, listMatches } from './text-lines.ts'

/** Files that are members of their own. The lines of all others are one member for each side. */
const maxFiles = 5000

/** The starts of changes, as far as their first characters tell. */
const marks = /^[ \t]*(?:@@ -\d|\*\*\* \d+(?:,\d+)? \*\*\*\*|\d+(?:,\d+)?[acd]\d+(?:,\d+)?\r?$)|^GIT binary patch/gm
const binaryMarks = new RegExp(`^${binaryPatch}`, 'gm')
const longestMark = 100

/** Reads patches: what a file has before and behind the changes, as far as it is in the patch, and binary data of Git. */
export const patchReader: Reader = {
  name: 'patches',
  recognizes: (source) => beginsAsText(source) && !listMatches(source, marks, longestMark).next().done,
  read: readPatch,
}

async function readPatch(source: Source, members: Members): Promise<Reading> {
  let count = 0
  for (const { path, pieces } of listMembers(source)) {
    const first = pieces.next()
    if (first.done === true) continue
    count++
    await members.give({ path, pieces: chain(first.value, pieces) })
  }
  for (const at of listMatches(source, binaryMarks, longestMark)) {
    for (const data of listGitBinary(source, at)) {
      count++
      await members.give({ path: `[binary patch at ${data.start}]`, pieces: decodeGitBinary(source, data) })
    }
  }
  // The text itself was scanned with the content.
  return { accounted: count > 0 ? accountForText(findTextEnd(source)) : [], doubts: [] }
}

type Member = { path: string; pieces: Generator<Buffer> }

/** Files of which the patch has the start, one by one, and the changes of all others together. */
function* listMembers(source: Source): Generator<Member> {
  for (const [file, side] of listSides(source, true)) {
    const name = file.path ?? `[patch at ${file.range.start}]`
    yield { path: side === 'new' ? name : `${name} [before]`, pieces: readRanges(source, listSide(source, file, side)) }
  }
  for (const side of ['new', 'old'] as const)
    yield { path: `[other changes, ${side}]`, pieces: readRanges(source, listOthers(source, side)) }
}

function* listSides(source: Source, isOwn: boolean): Generator<[PatchedFile, Side]> {
  let files = 0
  for (const file of listPatchedFiles(source)) {
    files++
    for (const side of ['new', 'old'] as const)
      if ((file.isFromStart[side] && files <= maxFiles) === isOwn) yield [file, side]
  }
}

function* listOthers(source: Source, wanted: Side): Generator<Range> {
  for (const [file, side] of listSides(source, false)) if (side === wanted) yield* listSide(source, file, side)
}

const pieceBytes = 65_536

/** Reads lines into pieces that are long enough to be passed on. */
function* readRanges(source: Source, ranges: Iterable<Range>): Generator<Buffer> {
  let lines: Buffer[] = []
  let bytes = 0
  for (const { start, end } of ranges) {
    for (const piece of source.pieces(start, end)) {
      lines.push(piece)
      bytes += piece.length
    }
    if (bytes < pieceBytes) continue
    yield Buffer.concat(lines)
    lines = []
    bytes = 0
  }
  if (bytes > 0) yield Buffer.concat(lines)
}

function* chain(first: Buffer, rest: Generator<Buffer>): Generator<Buffer> {
  yield first
  yield* rest
}

/** The file before and behind the changes of a patch. */
type Side = 'old' | 'new'

/** Changes of one file that follow each other in a patch. */
type PatchedFile = {
  path: string | undefined
  /** From the head of the first change to the end of the last one. */
  range: Range
  /** Whether the first change begins with the first line of the file, so that the patch may hold the whole file. */
  isFromStart: Record<Side, boolean>
}

type Form = 'unified' | 'context' | 'normal'

const lineRange = '(\\d{1,9})(?:,(\\d{1,9}))?'
/** The heads of changes: their indent, and the lines of the old and the new file. */
const heads: [Form, RegExp][] = [
  ['unified', new RegExp(`^([ \\t]*)@@ -${lineRange} \\+${lineRange}`)],
  ['context', new RegExp(`^([ \\t]*)\\*\\*\\* ${lineRange} \\*\\*\\*\\*`)],
  ['normal', new RegExp(`^([ \\t]*)${lineRange}[acd]${lineRange}$`)],
]

const contextMiddle = /^--- (?:\d{1,9},)?\d{1,9} ----/
const contextEnd = /^\*{8}/
const fileName = /^[ \t]*(?:\+\+\+|---|\*\*\*) (\S[^\t]{0,1000})/
const maxHeadChars = 1100

/** Finds the files that a patch changes. */
function* listPatchedFiles(source: Source): Generator<PatchedFile> {
  let file: PatchedFile | undefined
  let path: string | undefined
  for (const { line, hunk, taken } of listEvents(source, { start: 0, end: source.bytes })) {
    if (taken === undefined && hunk === undefined) {
      if (file !== undefined) yield file
      file = undefined
      path = parsePath(line) ?? path
    } else if (file !== undefined) file.range.end = line.next
    else if (hunk !== undefined) {
      const isFromStart = { old: hunk.starts.old <= 1, new: hunk.starts.new <= 1 }
      file = { path, range: { start: line.start, end: line.next }, isFromStart }
      path = undefined
    }
  }
  if (file !== undefined) yield file
}

function parsePath(line: Line): string | undefined {
  const name = fileName.exec(line.bytes.toString('latin1', 0, maxHeadChars))?.[1]?.trim()
  return name === undefined || name === '/dev/null' ? undefined : name.replace(/^[ab]\//, '')
}

/** A line within the changes: the sides that have it, and where it stands without the signs in front of it. */
type Taken = { sides: Side[]; part: Side | undefined; range: Range; textEnd: number }

/** A hunk of a patch is one change: its head tells where, and its lines are removed, added, or stay. */
class Hunk {
  readonly starts: Record<Side, number>
  readonly form: Form
  readonly #indent: string
  readonly #left: Record<Side, number>
  #part: Side = 'old'

  constructor(
    form: Form,
    indent: string,
    [oldStart, oldCount = '1', newStart, newCount = '1']: (string | undefined)[],
  ) {
    this.form = form
    this.#indent = indent
    // In a context diff, the start in the new file stands in the middle. Both are the same at the start of a file.
    this.starts = { old: Number(oldStart), new: Number(newStart ?? oldStart) }
    this.#left = { old: Number(oldCount), new: Number(newCount) }
  }

  /** Takes the next line if it belongs to the change. */
  take(line: Line): Taken | undefined {
    const text = line.bytes.toString('latin1', 0, maxHeadChars)
    const isIndented = text.startsWith(this.#indent)
    // Programs remove blanks at the end of a line.
    if (!isIndented && text.trim() !== '') return undefined
    const body = isIndented ? text.slice(this.#indent.length) : ''
    const found = this.#findSides(body)
    if (found === undefined) return undefined
    const signs = Math.min(line.bytes.length, this.#indent.length + (this.form === 'unified' ? 1 : 2))
    const range = { start: line.start + signs, end: line.next }
    return { ...found, range, textEnd: line.start + line.bytes.length }
  }

  #findSides(body: string): Pick<Taken, 'sides' | 'part'> | undefined {
    if (body.startsWith('\\')) return { sides: [], part: undefined }
    if (this.form === 'unified') return this.#findUnifiedSides(body[0])
    if (this.form === 'normal') {
      const side = body.startsWith('< ') ? 'old' : body.startsWith('> ') ? 'new' : undefined
      if (side === undefined) return body === '---' ? { sides: [], part: 'new' } : undefined
      return { sides: [side], part: side }
    }
    if (contextMiddle.test(body)) this.#part = 'new'
    else if (/^(?:[-+!] | {2}|$)/.test(body)) {
      const isKept = body[0] === ' ' || body === ''
      return { sides: isKept ? ['old', 'new'] : [this.#part], part: this.#part }
    } else if (!contextEnd.test(body)) return undefined
    return { sides: [], part: this.#part }
  }

  /** Counts the lines, because the name of the next file looks like a line that is removed. */
  #findUnifiedSides(sign: string | undefined): Pick<Taken, 'sides' | 'part'> | undefined {
    const left = this.#left
    const sides: Side[] = []
    if (sign === '+') sides.push('new')
    else if (sign === '-' && left.old > 0) sides.push('old')
    else if ((sign === ' ' || sign === undefined) && left.old + left.new > 0) sides.push('old', 'new')
    for (const side of sides) left[side]--
    return sides.length === 0 ? undefined : { sides, part: undefined }
  }
}

function parseHead(line: Line): Hunk | undefined {
  const text = line.bytes.toString('latin1', 0, maxHeadChars)
  for (const [form, pattern] of heads) {
    const found = pattern.exec(text)
    if (found === null) continue
    const [, indent = '', ...numbers] = found
    return new Hunk(form, indent, numbers)
  }
  return undefined
}

type PatchEvent = { line: Line; hunk?: Hunk; taken?: Taken }

/** The lines of a patch: heads of changes, lines within them, and others. Long lines come in parts. */
function* listEvents(source: Source, { start, end }: Range): Generator<PatchEvent> {
  let hunk: Hunk | undefined
  let cut: Taken | undefined
  for (const line of listLines(source, start, end)) {
    let taken: Taken | undefined
    if (cut === undefined) taken = hunk?.take(line)
    else taken = { ...cut, range: { start: line.start, end: line.next }, textEnd: line.start + line.bytes.length }
    const isWhole = line.next > line.start + line.bytes.length
    cut = isWhole ? undefined : taken
    if (taken !== undefined) {
      yield { line, taken }
      continue
    }
    hunk = parseHead(line)
    yield hunk === undefined ? { line } : { line, hunk }
  }
}

/** Lines of the other side that are kept for a side that has none of its own. */
const maxSpare = 100_000

/** The lines of a file that a patch has of one side, without the signs in front of them. */
function* listSide(source: Source, { range }: PatchedFile, side: Side): Generator<Range> {
  let last: Taken | undefined
  /** Lines of the other side of a context diff, which leaves out a side on which nothing changes. */
  let spare: Range[] = []
  let lines: Range[] = []
  let hasOwn = false
  for (const { hunk, taken } of listEvents(source, range)) {
    if (hunk !== undefined) {
      yield* hasOwn ? lines : spare
      lines = []
      spare = []
      hasOwn = false
    }
    if (taken === undefined) continue
    if (taken.sides.length === 0) {
      // The line in front of a mark has no line end in the file.
      if (taken.part === undefined && last !== undefined) last.range.end = last.textEnd
      continue
    }
    last = taken
    if (!taken.sides.includes(side)) continue
    if (taken.part === undefined || taken.part === side) {
      hasOwn = true
      yield* lines
      lines = [taken.range]
    } else if (spare.length < maxSpare) spare.push(taken.range)
  }
  yield* hasOwn ? lines : spare
}
