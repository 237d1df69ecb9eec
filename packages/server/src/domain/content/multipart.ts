import { malformed } from '../problem.ts'

/** Takes the bytes of one part as they come. */
export type PartSink = { write(chunk: Buffer): void; end(): void }

type State = 'preamble' | 'delimiter' | 'header' | 'content' | 'closed'

const maxPreambleBytes = 64 * 1024
const maxHeaderBytes = 16 * 1024
/** Blanks that may stand between a boundary and the end of its line. */
const maxPaddingBytes = 256

const ambiguous = () => malformed('A line of the content begins like the boundary of the form.')

const nothing: Buffer = Buffer.alloc(0)
const lineEnd: Buffer = Buffer.from('\r\n')
const headerEnd = Buffer.from('\r\n\r\n')

/**
 * Reads a multipart body, chunk by chunk. A line that merely begins like the boundary is refused: parsers differ in
 * whether it ends the part, and the one who trusts the verdict may read another file than was scanned. Written by hand
 * because the libraries cut the file there without a word, and checking beside one costs a second pass over every byte.
 */
export function newMultipartParser(deps: {
  boundary: string
  maxParts: number
  openPart(header: PartHeader): PartSink
}) {
  const delimiter = Buffer.from(`\r\n--${deps.boundary}`, 'latin1')
  let state: State = 'preamble'
  let kept: Buffer = lineEnd
  let sink: PartSink | undefined
  let parts = 0
  let preambleBytes = 0

  return {
    push(chunk: Buffer) {
      let rest = open(chunk) ?? (kept.length === 0 ? chunk : Buffer.concat([kept, chunk]))
      kept = nothing
      while (rest.length > 0 && state !== 'closed') {
        const next = advance(rest)
        if (next === undefined) return
        rest = next
      }
    },
    finish() {
      if (state !== 'closed') throw malformed('The form is cut short.')
    },
  }

  /**
   * The first delimiter has no line before it: it begins as if one had just ended. Almost always the body begins with it,
   * and its first chunk need not be copied to be behind that line end.
   */
  function open(chunk: Buffer): Buffer | undefined {
    const opening = delimiter.subarray(lineEnd.length)
    if (kept !== lineEnd || !chunk.subarray(0, opening.length).equals(opening)) return undefined
    state = 'delimiter'
    return chunk.subarray(opening.length)
  }

  /** What is left to read after one step; undefined when it takes more bytes to go on. */
  function advance(bytes: Buffer): Buffer | undefined {
    switch (state) {
      case 'preamble':
        return passContent(bytes, (part) => {
          preambleBytes += part.length
          if (preambleBytes > maxPreambleBytes) throw malformed('The form does not begin with its boundary.')
        })
      case 'content':
        return passContent(bytes, (part) => sink?.write(part))
      case 'delimiter':
        return readDelimiterEnd(bytes)
      default:
        return readHeader(bytes)
    }
  }

  function passContent(bytes: Buffer, take: (part: Buffer) => void): Buffer | undefined {
    const at = bytes.indexOf(delimiter)
    if (at === -1) {
      const safe = bytes.length - countBegun(bytes)
      // Whoever takes all of the memory may give it back: nothing of ours may point there then, not even at its end.
      kept = safe === bytes.length ? nothing : bytes.subarray(safe)
      if (safe > 0) take(bytes.subarray(0, safe))
      return undefined
    }
    if (at > 0) take(bytes.subarray(0, at))
    if (state === 'content') sink?.end()
    state = 'delimiter'
    return bytes.subarray(at + delimiter.length)
  }

  /** How many bytes at the end may be the beginning of a delimiter. */
  function countBegun(bytes: Buffer): number {
    const longest = Math.min(bytes.length, delimiter.length - 1)
    for (let at = bytes.indexOf(13, bytes.length - longest); at !== -1; at = bytes.indexOf(13, at + 1)) {
      if (delimiter.subarray(0, bytes.length - at).equals(bytes.subarray(at))) return bytes.length - at
    }
    return 0
  }

  /** `--` closes the body, blanks and a line end open a part, anything else is no delimiter. */
  function readDelimiterEnd(bytes: Buffer): Buffer | undefined {
    // Almost always just a line end.
    const isPlain = bytes[0] === 13 && bytes[1] === 10
    const start = isPlain ? '\r\n' : bytes.toString('latin1', 0, maxPaddingBytes + 4)
    if (start.startsWith('--')) {
      state = 'closed'
      return nothing
    }
    const opening = /^[ \t]*\r\n/.exec(start)
    if (opening !== null) {
      parts++
      if (parts > deps.maxParts) throw malformed('The form has too many parts.')
      state = 'header'
      // Its line end belongs to the header as well: an empty header ends with it.
      return bytes.subarray(opening[0].length - 2)
    }
    if (start.length <= maxPaddingBytes && /^(-|[ \t]*\r?)$/.test(start)) {
      kept = bytes
      return undefined
    }
    throw ambiguous()
  }

  function readHeader(bytes: Buffer): Buffer | undefined {
    const at = bytes.indexOf(headerEnd)
    if (at > maxHeaderBytes || (at === -1 && bytes.length > maxHeaderBytes)) {
      throw malformed('The header of a part is too long.')
    }
    // Content that begins with the boundary: some take it for the end of an empty part. Seen only when all of it is there.
    const start = at === -1 ? undefined : bytes.subarray(at + 2, at + 2 + delimiter.length)
    if (start === undefined || (start.length < delimiter.length && delimiter.subarray(0, start.length).equals(start))) {
      kept = bytes
      return undefined
    }
    if (start.equals(delimiter)) throw ambiguous()
    const header = readPartHeader(bytes.toString('utf8', 2, Math.max(2, at)))
    sink = header === undefined ? undefined : deps.openPart(header)
    state = 'content'
    return bytes.subarray(at + headerEnd.length)
  }
}

/** What a part of a form says of itself. With a filename, or as plain bytes, it is a file; else a text field. */
export type PartHeader = { name: string; filename: string | undefined; isFile: boolean; charset: string | undefined }

/** Undefined for a part that is no field of a form: without a name, or of another disposition. */
export function readPartHeader(text: string): PartHeader | undefined {
  const unfolded = /\n[ \t]/.test(text) ? text.replaceAll(/\r\n[ \t]+/g, ' ') : text
  const lines = unfolded.split('\r\n')
  const disposition = findHeader(lines, 'content-disposition')
  if (disposition === undefined || !/^form-data\s*(;|$)/i.test(disposition)) return undefined
  const params = readParams(disposition)
  const name = params.get('name')
  if (name === undefined) return undefined
  const filename = readExtended(params.get('filename*')) ?? params.get('filename')
  if (filename !== undefined) return { name, filename: toBaseName(filename), isFile: true, charset: undefined }
  const type = findHeader(lines, 'content-type') ?? ''
  return {
    name,
    filename,
    isFile: /^application\/octet-stream\s*(;|$)/i.test(type),
    charset: readParams(type).get('charset'),
  }
}

function findHeader(lines: string[], name: string): string | undefined {
  for (const line of lines) {
    const colon = line.indexOf(':')
    if (colon === name.length && line.slice(0, colon).toLowerCase() === name) return line.slice(colon + 1).trim()
  }
  return undefined
}

/** `; name="a"; filename=b`. The first of two alike counts. */
function readParams(value: string): Map<string, string> {
  const params = new Map<string, string>()
  for (const [, name = '', quoted, plain] of value.matchAll(
    /;\s*([^\s=;"]+)\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^\s;]*))/gs,
  )) {
    const key = name.toLowerCase()
    if (!params.has(key)) params.set(key, quoted === undefined ? (plain ?? '') : unescapeQuoted(quoted))
  }
  return params
}

/**
 * Browsers write a quote in a name as `%22`, others as `\"`. A backslash before anything else is one: Windows paths have
 * them, and nobody escapes them.
 */
const unescapeQuoted = (text: string) => text.replaceAll(/\\(["\\])/g, '$1')

/** `utf-8''na%C3%AFve.txt`; undefined when it cannot be read. */
function readExtended(value: string | undefined): string | undefined {
  const [, charset, encoded] = /^([\w-]+)'[\w-]*'(.*)$/s.exec(value ?? '') ?? []
  if (charset === undefined || encoded === undefined) return undefined
  try {
    const bytes = Buffer.from(
      encoded.replaceAll(/%([0-9a-f]{2})/gi, (_, hex) => String.fromCharCode(Number.parseInt(hex, 16))),
      'latin1',
    )
    return new TextDecoder(charset).decode(bytes)
  } catch {
    return undefined
  }
}

/** Some send the whole path of the file on their own machine. */
const toBaseName = (filename: string) =>
  filename.slice(Math.max(filename.lastIndexOf('/'), filename.lastIndexOf('\\')) + 1)
