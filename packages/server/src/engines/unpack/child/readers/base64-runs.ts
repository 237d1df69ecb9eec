import type { Range } from '../reader.ts'
import type { Source } from '../source.ts'
import { decodeBase64 } from './transfer-encodings.ts'

/** Base64 in text. Between the ranges stand quotes, signs that join strings, and the words that each line begins with. */
export type Base64Run = { ranges: Range[]; chars: number }

/** Fewer characters hold no file. */
const minRunChars = 64
/** Base64 that continues on another line has at least as many characters in its first. */
const minLineChars = 32
/** A last line of so few characters may be a word of the text behind the run. */
const maxWordChars = 24
const maxPrefixBytes = 200

const sign = 1
const digit = 2
const upper = 4
const lower = 8
const letters = 15
const pad = 16
const blank = 32
const lineEnd = 64
/** Quotes, and signs that join or continue strings. */
const joint = 128

const kinds = new Uint8Array(256)
const setKind = (chars: string, kind: number) => {
  for (const char of chars) kinds[char.charCodeAt(0)] = kind
}
setKind('ABCDEFGHIJKLMNOPQRSTUVWXYZ', upper)
setKind('abcdefghijklmnopqrstuvwxyz', lower)
setKind('0123456789', digit)
setKind('+/-_', sign)
setKind('=', pad)
setKind(' \t', blank)
setKind('\r\n', lineEnd)
setKind('"\'`.,&\\^|;()#*', joint)

const backslash = 0x5c
const slash = 0x2f
const lineFeed = 0x0a
const isLineEscape = (byte: number) => byte === 0x6e || byte === 0x72 || byte === 0x74

type OpenRun = Base64Run & {
  /** The kinds of the characters, as bits. */
  kinds: number
  /** The characters of the first line or string; a shorter one is the last. */
  lineChars: number
  lastChars: number
  prefix: Buffer
  isOver: boolean
}

/** Finds runs of base64 in the text before `end`. */
export function* listBase64Runs(source: Source, end: number): Generator<Base64Run> {
  const scanner = new Scanner(source)
  let at = 0
  for (const piece of source.pieces(0, end)) {
    for (let i = 0; i < piece.length; i++) scanner.take(piece[i] as number, at + i)
    at += piece.length
    yield* scanner.complete.splice(0)
  }
  scanner.close(end)
  yield* scanner.complete.splice(0)
}

/** Decodes a run, in the alphabet for addresses, too. */
export function* decodeRun(source: Source, { ranges }: Base64Run): Generator<Buffer> {
  yield* decodeBase64(listPieces(source, ranges), { onJunk: 'skip', onPad: 'stop', isUrlSafe: true })
}

function* listPieces(source: Source, ranges: Range[]): Generator<Buffer> {
  for (const { start, end } of ranges) yield* source.pieces(start, end)
}

/** Takes the text byte by byte. A chunk is a sequence of base64 characters without any other; a run has one or more. */
class Scanner {
  readonly complete: Base64Run[] = []
  readonly #source: Source
  #run: OpenRun | undefined
  #lineStart = 0
  #chunkStart = -1
  #chunkKinds = 0
  #chars = 0
  #isPadded = false
  #isEscaped = false
  /** Whether only blanks, or only blanks and signs that join strings, stand between the run and this place. */
  #isBlankGap = true
  #isJointGap = true
  /** The place behind the words with which this line begins as the first line of the run did. */
  #prefixEnd = -1

  constructor(source: Source) {
    this.#source = source
  }

  take(byte: number, at: number) {
    const kind = kinds[byte] as number
    const wasEscaped = this.#isEscaped
    this.#isEscaped = byte === backslash
    if ((wasEscaped && isLineEscape(byte)) || at < this.#prefixEnd) return
    if (kind !== 0 && kind <= letters) {
      if (this.#chunkStart === -1 || this.#isPadded) this.#startChunk(at)
      this.#chars++
      this.#chunkKinds |= kind
      return
    }
    if (kind === pad && this.#chunkStart !== -1) {
      this.#isPadded = true
      return
    }
    // A slash may be escaped: the backslash before it does not end the chunk.
    if (byte === backslash && this.#chunkStart !== -1 && this.#source.read(at + 1, at + 2)[0] === slash) return
    this.#endChunk(at)
    if (kind === lineEnd) this.#startLine(byte, at + 1)
    else if (kind !== blank) {
      this.#isBlankGap = false
      if (kind !== joint) this.#isJointGap = false
    }
  }

  close(end: number) {
    this.#endChunk(end)
    this.#closeRun()
  }

  #startChunk(at: number) {
    this.#endChunk(at)
    this.#chunkStart = at
    this.#chunkKinds = 0
    this.#chars = 0
    this.#isPadded = false
  }

  #endChunk(end: number) {
    if (this.#chunkStart === -1) return
    const chunk = { start: this.#chunkStart, end }
    const isRepeated = chunk.start === this.#prefixEnd
    this.#chunkStart = -1
    this.#prefixEnd = -1
    const run = this.#run
    if (this.#chunkKinds === sign && this.#chars < 4 && !this.#isPadded) {
      // Signs alone join strings, such as a plus sign.
      this.#isBlankGap = false
    } else if (run?.isOver === false && this.#chars <= run.lineChars && (isRepeated || this.#isJointGap)) {
      this.#extendRun(run, chunk, this.#isBlankGap && !isRepeated)
      this.#setGap(true)
    } else if (this.#chars >= minLineChars) {
      this.#closeRun()
      this.#run = this.#openRun(chunk)
      this.#setGap(true)
    } else {
      this.#setGap(false)
    }
  }

  #setGap(isEmpty: boolean) {
    this.#isBlankGap = isEmpty
    this.#isJointGap = isEmpty
  }

  #openRun(chunk: Range): OpenRun {
    const prefixStart = Math.max(this.#lineStart, chunk.start - maxPrefixBytes)
    const prefix = this.#source.read(prefixStart, chunk.start)
    const hasWords = prefixStart === this.#lineStart && /\w/.test(prefix.toString('latin1'))
    return {
      ranges: [chunk],
      chars: this.#chars,
      kinds: this.#chunkKinds,
      lineChars: this.#chars,
      lastChars: this.#chars,
      prefix: hasWords ? Buffer.from(prefix) : empty,
      isOver: this.#isPadded,
    }
  }

  #extendRun(run: OpenRun, chunk: Range, isBlankGap: boolean) {
    const last = run.ranges.at(-1)
    if (last !== undefined && isBlankGap && this.#chars > maxWordChars) last.end = chunk.end
    else run.ranges.push(chunk)
    run.chars += this.#chars
    run.kinds |= this.#chunkKinds
    run.lastChars = this.#chars
    run.isOver = this.#isPadded || this.#chars < run.lineChars
  }

  #startLine(byte: number, next: number) {
    this.#lineStart = next
    if (this.#run === undefined || byte !== lineFeed) return
    const { prefix, isOver } = this.#run
    const isRepeated = prefix.length > 0 && this.#source.read(next, next + prefix.length).equals(prefix)
    if (isRepeated && !isOver) this.#prefixEnd = next + prefix.length
    else if (isOver || !this.#isJointGap) this.#closeRun()
  }

  #closeRun() {
    const run = this.#run
    this.#run = undefined
    if (run === undefined || run.chars < minRunChars || !hasBase64Kinds(run.kinds) || isHash(this.#source, run)) return
    const { ranges, chars } = run
    this.complete.push({ ranges, chars })
    if (ranges.length === 1) return
    if (run.lastChars <= maxWordChars) this.complete.push({ ranges: ranges.slice(0, -1), chars: chars - run.lastChars })
    // Strings that follow each other may also be a list of files.
    for (const range of ranges) {
      const length = range.end - range.start
      if (length >= minRunChars) this.complete.push({ ranges: [range], chars: length })
    }
  }
}

const empty = Buffer.alloc(0)

/** Hexadecimal digits, numbers and words do not have all kinds of characters. */
const hasBase64Kinds = (found: number) =>
  (found & upper) !== 0 && (found & lower) !== 0 && (found & (digit | sign)) !== 0

/** Whether a run is the hash of a file, as lists of packages have it for each package. */
function isHash(source: Source, { ranges: [first], chars }: Base64Run): boolean {
  return first !== undefined && chars < 100 && /^sha\d{3}-/.test(source.read(first.start, first.start + 7).toString())
}
