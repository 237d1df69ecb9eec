import { binaryPatch } from '../../../../domain/content/patch-lines.ts'
import type { Members, Range, Reader, Reading } from '../reader.ts'
import type { Source } from '../source.ts'
import { decodeGitBinary, listGitBinary } from './git-binary.ts'
import { listPatchedFiles, listSide, type PatchedFile, type Side } from './patch-hunks.ts'
import { accountForText, findTextEnd } from './text-end.ts'
import { hasControls, listMatches } from './text-lines.ts'

const firstBytes = 32
/** Files that are members of their own. The lines of all others are one member for each side. */
const maxFiles = 5000

/** The starts of changes. Only their first characters are compared here. */
const marks = /^[ \t]*(?:@@ -\d|\*\*\* \d+(?:,\d+)? \*\*\*\*|\d+(?:,\d+)?[acd]\d+(?:,\d+)?\r?$)|^GIT binary patch/gm
const binaryMarks = new RegExp(`^${binaryPatch}`, 'gm')
const longestMark = 100

/** Reads patches: what a file has before and behind the changes, as far as it is in the patch, and binary data of Git. */
export const patchReader: Reader = {
  name: 'patches',
  recognizes: (source) =>
    !hasControls(source.read(0, firstBytes)) && !listMatches(source, marks, longestMark).next().done,
  read: async (source, members) => readPatch(source, members),
}

async function readPatch(source: Source, members: Members): Promise<Reading> {
  let count = 0
  for (const { path, pieces } of listMembers(source)) {
    const [first, rest] = takeFirst(pieces)
    if (first === undefined) continue
    count++
    await members.give({ path, pieces: chain(first, rest) })
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

function takeFirst(pieces: Generator<Buffer>): [Buffer | undefined, Generator<Buffer>] {
  const { value, done } = pieces.next()
  return [done === true ? undefined : value, pieces]
}

function* chain(first: Buffer, rest: Generator<Buffer>): Generator<Buffer> {
  yield first
  yield* rest
}
