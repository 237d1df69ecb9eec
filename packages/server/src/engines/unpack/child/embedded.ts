import type { Doubt } from '../../../domain/ports/engines.ts'
import type { ReadFrom } from './embedded-archives.ts'
import { type EmbeddedFormat, embeddedFormats, longestMatch } from './embedded-formats.ts'
import type { Range, Reading } from './reader.ts'
import { cutSource, type Source } from './source.ts'

/** Containers that are opened in one content. Programs hold a few; a file with more is made to exhaust the scanner. */
const maxOpened = 256
/** Heads that are checked in one content. */
const maxChecked = 100_000
const checkedBytes = 4608
/** Compressed streams that begin by chance break after fewer bytes. Those are scanned all the same. */
const minStreamBytes = 1024

/** Reads the container that begins at the start of a source, and counts the bytes of the members that it gives. */
type ReadStart = (source: Source) => Promise<Reading & { givenBytes: number }>

/**
 * Searches content for containers that begin further in, or in some ranges, and reads each. Chance may place the
 * signature of a format anywhere: a container that does not open is a doubt only where its head leaves no room for
 * chance.
 */
export async function readEmbedded(
  source: Source,
  readStart: ReadStart,
  ranges: Range[] = [{ start: 1, end: source.bytes }],
): Promise<Reading> {
  const accounted: Range[] = []
  const doubts = new Set<Doubt>()
  let opened = 0
  for (const candidate of findCandidates(source, ranges, () => accounted.at(-1)?.end ?? 0)) {
    if (candidate === 'too many') {
      doubts.add('ScanLimitExceeded')
      break
    }
    const { start, format } = candidate
    if (opened++ === maxOpened) {
      doubts.add('ScanLimitExceeded')
      break
    }
    const reading = await readStart(cutSource(source, start))
    const isBroken = reading.doubts.includes('UnsupportedContainer')
    if (format.isStream === true && isBroken && reading.givenBytes < minStreamBytes) continue
    const isOpened = reading.accounted.length > 0
    if (isOpened || format.isCertain) for (const doubt of reading.doubts) doubts.add(doubt)
    if (!isOpened && format.isCertain && reading.doubts.length === 0) doubts.add('UnsupportedContainer')
    const end = Math.max(...reading.accounted.map((range) => range.end))
    if (isOpened) accounted.push({ start, end: start + end })
  }
  return { accounted, doubts: [...doubts] }
}

type Candidate = { start: number; format: EmbeddedFormat }

/** The places where a container seems to begin, in order. `getStart` tells from where on further ones count. */
function* findCandidates(source: Source, ranges: Range[], getStart: () => number): Generator<Candidate | 'too many'> {
  const formats = embeddedFormats.filter(({ needs }) => needs === undefined || source.find(needs, 0) !== -1)
  let checked = 0
  for (const { start: first, end } of ranges) {
    const searches = formats.map((format) => ({ format, at: findNext(source, format, { start: first, end }) }))
    for (; ; checked++) {
      const from = getStart()
      for (const search of searches) {
        if (search.at < from) search.at = findNext(source, search.format, { start: from, end })
      }
      const next = searches.reduce((first, search) => (search.at < first.at ? search : first))
      if (next.at === Infinity) break
      if (checked >= maxChecked) {
        yield 'too many'
        return
      }
      const { at: start, format } = next
      const read: ReadFrom = (from, until) => source.read(start + from, start + until)
      if (format.isPlausible(read(0, checkedBytes), read)) yield { start, format }
      next.at = findNext(source, format, { start: start + 1, end })
    }
  }
}

/** The next start of the format in a range; Infinity when there is none. */
function findNext(source: Source, { pattern, patternAt }: EmbeddedFormat, { start, end }: Range): number {
  const range = { start: start + patternAt, end: Math.min(source.bytes, end + patternAt) }
  const found = Buffer.isBuffer(pattern)
    ? source.find(pattern, range.start, range.end)
    : findMatch(source, pattern, range)
  return found === -1 ? Infinity : found - patternAt
}

const pieceBytes = 2 ** 20

/** The position of the first match of a global expression that begins in a range, or -1. */
function findMatch(source: Source, expression: RegExp, { start, end }: Range): number {
  for (let at = start; at < end; at += pieceBytes) {
    const text = source.read(at, Math.min(end, at + pieceBytes) + longestMatch).toString('latin1')
    expression.lastIndex = 0
    const match = expression.exec(text)
    if (match !== null) return at + match.index < end ? at + match.index : -1
  }
  return -1
}
