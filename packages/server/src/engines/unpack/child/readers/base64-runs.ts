import {
  base64Kinds,
  hasBase64Kinds,
  hasEncodedKinds,
  minBase64Chars,
  minLineChars,
  setKind,
  sign,
} from '../../../../domain/content/base64-text.ts'
import type { Range, Source } from '../reader.ts'

/** Base64 in text. Between the ranges stand quotes, signs that join strings, and the words that each line begins with. */
export type Base64Run = {
  ranges: Range[]
  chars: number
  /** The run has letters of both cases, or is a part of one that has. Base32 has letters of one case only. */
  isBase64: boolean
  /** The run is the start of another one, in case a line or string stands alone or the last one is a word. */
  isStart?: boolean
}

/** A last line of so few characters may be a word of the text behind the run. */
const maxWordChars = 24
const maxPrefixBytes = 200

const letters = 15
const pad = 16
const blank = 32
const lineEnd = 64
/** Quotes, and signs that join or continue strings. */
const joint = 128

const kinds = Uint8Array.from(base64Kinds)
setKind(kinds, '=', pad)
setKind(kinds, ' \t', blank)
setKind(kinds, '\r\n', lineEnd)
setKind(kinds, '"\'`.,&\\^|;()#*', joint)

const ampersand = 0x26
const backslash = 0x5c
const slash = 0x2f
const lineFeed = 0x0a
/** A line end in XML, which stands in base64 that was wrapped before it was written into a document. */
const lineReference = /^&#(?:1[03]|x0{0,6}[ad]);/i
const maxReferenceBytes = 16
const isLineEscape = (byte: number) => byte === 0x6e || byte === 0x72 || byte === 0x74

const isLetter = (byte: number) => {
  const kind = kinds[byte] as number
  return kind !== 0 && kind <= letters
}

/** Base64 characters without any others, but for escaped line ends between the parts. */
type Chunk = Range & { parts: Range[] }

type OpenRun = Omit<Base64Run, 'isBase64'> & {
  /** A short word in front of the first line, which some programs decode as well. */
  before: Range | undefined
  /** The kinds of the characters, as bits. */
  kinds: number
  /** The characters and bytes of a full line or string; a shorter one is the last. Escaped signs take more bytes. */
  lineChars: number
  lineBytes: number
  /** The run has one line so far, which began behind other text and may be shorter than the next. */
  isFirstCut: boolean
  /** The first line is shorter than the next, and may be other text. */
  isFirstShort: boolean
  lastChars: number
  prefix: Buffer
  isOver: boolean
}

/** Finds runs of base64 in lines of at least 32 characters, in the text before `end`. */
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

/** Takes the text byte by byte. A run has one or more chunks. */
class Scanner {
  readonly complete: Base64Run[] = []
  readonly #source: Source
  #run: OpenRun | undefined
  #lineStart = 0
  #chunkStart = -1
  /** The parts of the chunk before its last escaped line end, and the start of the part behind it. */
  #parts: Range[] = []
  #partStart = -1
  #chunkKinds = 0
  #chars = 0
  #isPadded = false
  #isEscaped = false
  /** The place behind a reference to a line end. */
  #referenceEnd = -1
  /** Whether only blanks, or only blanks and signs that join strings, stand between the run and this place. */
  #isBlankGap = true
  #isJointGap = true
  /** The characters before this place, if only blanks and signs that join strings follow them. */
  #before: Range | undefined
  /** The place behind the words with which this line begins as the first line of the run did. */
  #prefixEnd = -1

  constructor(source: Source) {
    this.#source = source
  }

  take(byte: number, at: number) {
    const kind = kinds[byte] as number
    const wasEscaped = this.#isEscaped
    this.#isEscaped = byte === backslash
    if ((wasEscaped && isLineEscape(byte)) || at < this.#prefixEnd || at < this.#referenceEnd) return
    if (isLetter(byte)) {
      if (this.#chunkStart === -1 || this.#isPadded) this.#startChunk(at)
      this.#chars++
      this.#chunkKinds |= kind
      return
    }
    if (kind === pad && this.#chunkStart !== -1) {
      this.#isPadded = true
      return
    }
    if (byte === backslash && this.#chunkStart !== -1 && this.#continuesBehind(at)) return
    if (byte === ampersand && this.#takeLineReference(at)) return
    this.#endChunk(at)
    if (kind === lineEnd) this.#startLine(byte, at + 1)
    else if (kind !== blank) {
      this.#isBlankGap = false
      if (kind === joint) return
      this.#isJointGap = false
      this.#before = undefined
    }
  }

  /** A slash may be escaped, and an escaped line end stands where the data was wrapped: neither ends the chunk. */
  #continuesBehind(at: number): boolean {
    const [escaped = 0, next = 0] = this.#source.read(at + 1, at + 3)
    if (escaped === slash) return true
    if (!isLineEscape(escaped) || !isLetter(next)) return false
    this.#startPart(at, at + 2)
    return true
  }

  /** A reference to a line end joins what stands around it. Its digits are not part of the data. */
  #takeLineReference(at: number): boolean {
    const reference = lineReference.exec(this.#source.read(at, at + maxReferenceBytes).toString('latin1'))?.[0]
    if (reference === undefined) return false
    this.#referenceEnd = at + reference.length
    const [next = 0] = this.#source.read(this.#referenceEnd, this.#referenceEnd + 1)
    if (this.#chunkStart !== -1 && isLetter(next)) this.#startPart(at, this.#referenceEnd)
    else this.#endChunk(at)
    this.#isBlankGap = false
    return true
  }

  #startPart(end: number, start: number) {
    this.#parts.push({ start: this.#partStart, end })
    this.#partStart = start
  }

  close(end: number) {
    this.#endChunk(end)
    this.#closeRun()
  }

  #startChunk(at: number) {
    this.#endChunk(at)
    this.#chunkStart = at
    this.#parts = []
    this.#partStart = at
    this.#chunkKinds = 0
    this.#chars = 0
    this.#isPadded = false
  }

  #endChunk(end: number) {
    if (this.#chunkStart === -1) return
    const chunk = { start: this.#chunkStart, end, parts: [...this.#parts, { start: this.#partStart, end }] }
    const isRepeated = chunk.start === this.#prefixEnd
    this.#chunkStart = -1
    this.#prefixEnd = -1
    const run = this.#run
    if (this.#chunkKinds === sign && this.#chars < 4 && !this.#isPadded) {
      // Signs alone join strings, such as a plus sign.
      this.#isBlankGap = false
      return
    }
    if (run?.isOver === false && this.#fits(run, chunk) && (isRepeated || this.#isJointGap)) {
      this.#extendRun(run, chunk, this.#isBlankGap && !isRepeated)
      this.#setGap(true)
    } else if (this.#chars >= minLineChars) {
      this.#closeRun()
      this.#run = this.#openRun(chunk)
      this.#setGap(true)
    } else {
      this.#setGap(false)
    }
    this.#before = this.#isPadded || this.#chars >= minLineChars ? undefined : chunk
  }

  /**
   * Whether a chunk is no longer than the lines of the run before it. A first line behind a name may be shorter than the
   * next: calendars, contacts and markup indent the others.
   */
  #fits({ lineChars, lineBytes, isFirstCut, ranges }: OpenRun, { start, end }: Range): boolean {
    if (this.#chars <= lineChars || end - start <= lineBytes) return true
    const isIndented = this.#isBlankGap && (ranges[0]?.start ?? 0) < this.#lineStart
    return isFirstCut && (start === this.#lineStart || isIndented)
  }

  #setGap(isEmpty: boolean) {
    this.#isBlankGap = isEmpty
    this.#isJointGap = isEmpty
  }

  #openRun(chunk: Chunk): OpenRun {
    const prefixStart = Math.max(this.#lineStart, chunk.start - maxPrefixBytes)
    const prefix = this.#source.read(prefixStart, chunk.start)
    const hasWords = prefixStart === this.#lineStart && /\w/.test(prefix.toString('latin1'))
    return {
      ranges: chunk.parts,
      before: this.#before,
      chars: this.#chars,
      kinds: this.#chunkKinds,
      lineChars: this.#chars,
      lineBytes: chunk.end - chunk.start,
      isFirstCut: chunk.start > this.#lineStart,
      isFirstShort: false,
      lastChars: this.#chars,
      prefix: hasWords ? Buffer.from(prefix) : empty,
      isOver: this.#isPadded,
    }
  }

  #extendRun(run: OpenRun, chunk: Chunk, isBlankGap: boolean) {
    const bytes = chunk.end - chunk.start
    const isLonger = this.#chars > run.lineChars && bytes > run.lineBytes
    const last = run.ranges.at(-1)
    const [first, ...further] = chunk.parts
    if (last !== undefined && first !== undefined && isBlankGap && this.#chars > maxWordChars && !isLonger) {
      last.end = first.end
      run.ranges.push(...further)
    } else {
      run.ranges.push(...chunk.parts)
    }
    run.chars += this.#chars
    run.kinds |= this.#chunkKinds
    run.lastChars = this.#chars
    const isShort = this.#chars < run.lineChars && bytes < run.lineBytes
    run.isOver = this.#isPadded || isShort
    if (run.isFirstCut) {
      run.lineChars = Math.max(run.lineChars, this.#chars)
      run.lineBytes = Math.max(run.lineBytes, bytes)
      run.isFirstCut = false
      run.isFirstShort = isLonger
    }
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
    if (run === undefined || !hasEncodedKinds(run.kinds, run.chars)) return
    const { ranges, chars } = run
    const isBase64 = hasBase64Kinds(run.kinds) && chars >= minBase64Chars
    this.complete.push({ ranges, chars, isBase64 })
    if (run.before !== undefined && !isLabel(this.#source, run.before))
      this.complete.push({ ranges: [run.before, ...ranges], chars, isBase64 })
    if (ranges.length === 1) return
    if (run.isFirstShort) this.complete.push({ ranges: ranges.slice(1), chars, isBase64 })
    if (run.lastChars <= maxWordChars)
      this.complete.push({ ranges: ranges.slice(0, -1), chars: chars - run.lastChars, isBase64, isStart: true })
    // Strings that follow each other may also be a list of files.
    for (const range of ranges) {
      const length = range.end - range.start
      const isStart = range === ranges[0]
      if (length >= minBase64Chars) this.complete.push({ ranges: [range], chars: length, isBase64, isStart })
    }
  }
}

const empty = Buffer.alloc(0)

/** Whether a word is the end of the label in front of a key or of armour. */
const isLabel = (source: Source, { start, end }: Range) => source.read(start, end).toString('latin1').endsWith('-----')
