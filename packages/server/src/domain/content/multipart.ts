import { MIMEType } from 'node:util'
import { malformed } from '../problem.ts'

/** Takes the bytes of one part as they arrive. */
export type PartSink = { write(chunk: Buffer): void; end(): void }

type State = 'preamble' | 'delimiter' | 'header' | 'content' | 'epilogue'

const maxPreambleBytes = 64 * 1024
const maxHeaderBytes = 16 * 1024
/** The most blanks between a boundary and the end of its line. */
const maxPaddingBytes = 256

const newAmbiguousBoundary = () => malformed('A line of the content begins like the boundary of the form.')

const emptyBuffer: Buffer = Buffer.alloc(0)
const lineEnd: Buffer = Buffer.from('\r\n')
const headerEnd = Buffer.from('\r\n\r\n')

/**
 * Reads a multipart body, chunk by chunk. What parsers read differently is refused, because the reader of the file could
 * get other content than was scanned: a line that merely begins like the boundary, a part after the closing boundary, a
 * part with two names, and a part in base64, which some decode. Multipart libraries choose one reading silently, and
 * checking beside a library costs a second pass over every byte.
 */
export function newMultipartParser(deps: {
  boundary: string
  maxParts: number
  openPart(header: PartHeader): PartSink
}) {
  const delimiter = Buffer.from(`\r\n--${deps.boundary}`, 'latin1')
  let state: State = 'preamble'
  /** Bytes that are read again with the next chunk. The first delimiter begins as if a line had just ended. */
  let unread: Buffer = lineEnd
  let sink: PartSink | undefined
  let parts = 0
  let preambleBytes = 0

  return {
    push(chunk: Buffer) {
      let rest = openAtStart(chunk) ?? (unread.length === 0 ? chunk : Buffer.concat([unread, chunk]))
      unread = emptyBuffer
      while (rest.length > 0) {
        const next = advance(rest)
        if (next === undefined) return
        rest = next
      }
    },
    finish() {
      if (state !== 'epilogue') throw malformed('The form ends before its closing boundary.')
    },
  }

  /** Almost every body begins with its boundary. Then the first chunk need not be copied behind a line end. */
  function openAtStart(chunk: Buffer): Buffer | undefined {
    const opening = delimiter.subarray(lineEnd.length)
    if (unread !== lineEnd || !chunk.subarray(0, opening.length).equals(opening)) return undefined
    state = 'delimiter'
    return chunk.subarray(opening.length)
  }

  /** Takes one step and returns the bytes that are left; undefined when the step needs more bytes. */
  function advance(bytes: Buffer): Buffer | undefined {
    switch (state) {
      case 'preamble':
        return passContent(bytes, (part) => {
          preambleBytes += part.length
          if (preambleBytes > maxPreambleBytes) throw malformed('The form does not begin with its boundary.')
        })
      case 'content':
        return passContent(bytes, (part) => sink?.write(part))
      case 'epilogue':
        return passContent(bytes, () => {})
      case 'delimiter':
        return passDelimiterEnd(bytes)
      default:
        return passHeader(bytes)
    }
  }

  function passContent(bytes: Buffer, take: (part: Buffer) => void): Buffer | undefined {
    const at = bytes.indexOf(delimiter)
    if (at === -1) {
      const safe = bytes.length - countPartialDelimiter(bytes, delimiter)
      unread = copy(bytes.subarray(safe))
      if (safe > 0) take(bytes.subarray(0, safe))
      return undefined
    }
    if (at > 0) take(bytes.subarray(0, at))
    if (state === 'epilogue') throw malformed('The form goes on after its closing boundary.')
    if (state === 'content') sink?.end()
    state = 'delimiter'
    return bytes.subarray(at + delimiter.length)
  }

  function passDelimiterEnd(bytes: Buffer): Buffer | undefined {
    const end = readDelimiterEnd(bytes)
    if (end === 'closing') {
      state = 'epilogue'
      return bytes.subarray('--'.length)
    }
    if (end === 'incomplete') {
      unread = copy(bytes)
      return undefined
    }
    parts++
    if (parts > deps.maxParts) throw malformed('The form has too many parts.')
    state = 'header'
    // The line end is kept as the beginning of the header: an empty header ends with it.
    return bytes.subarray(end.length - lineEnd.length)
  }

  function passHeader(bytes: Buffer): Buffer | undefined {
    const at = findHeaderEnd(bytes, delimiter)
    if (at === undefined) {
      unread = copy(bytes)
      return undefined
    }
    const header = readPartHeader(bytes.toString('utf8', 2, Math.max(2, at)))
    sink = header === undefined ? undefined : deps.openPart(header)
    state = 'content'
    return bytes.subarray(at + headerEnd.length)
  }
}

/** Copies what is left of a chunk, because whoever gets the chunk next may free or move its memory. */
const copy = (bytes: Buffer): Buffer => (bytes.length === 0 ? emptyBuffer : Buffer.from(bytes))

/**
 * The number of bytes at the end that may be the beginning of a delimiter. Only the first byte of a delimiter is a
 * carriage return, because no header can have one: only the last one of the bytes can be its beginning.
 */
function countPartialDelimiter(bytes: Buffer, delimiter: Buffer): number {
  const at = bytes.subarray(-(delimiter.length - 1)).lastIndexOf(13)
  if (at === -1) return 0
  const end = bytes.subarray(Math.max(0, bytes.length - delimiter.length + 1) + at)
  return delimiter.subarray(0, end.length).equals(end) ? end.length : 0
}

/** Reads the end of a boundary line: `--` closes the form; blanks and a line end, which are returned, open a part. */
function readDelimiterEnd(bytes: Buffer): 'closing' | 'incomplete' | { length: number } {
  // Almost always the line ends at once.
  if (bytes[0] === 13 && bytes[1] === 10) return lineEnd
  const start = bytes.toString('latin1', 0, maxPaddingBytes + 4)
  if (start.startsWith('--')) return 'closing'
  const opening = /^[ \t]*\r\n/.exec(start)?.[0]
  if (opening !== undefined) return opening
  if (start.length <= maxPaddingBytes && /^(-|[ \t]*\r?)$/.test(start)) return 'incomplete'
  throw newAmbiguousBoundary()
}

/** Finds the end of a part's header; undefined when more bytes are needed. */
function findHeaderEnd(bytes: Buffer, delimiter: Buffer): number | undefined {
  const at = bytes.indexOf(headerEnd)
  if (at > maxHeaderBytes || (at === -1 && bytes.length > maxHeaderBytes)) {
    throw malformed('The header of a part is too long.')
  }
  if (at === -1) return undefined
  // Some parsers take content that begins with the boundary for the end of an empty part.
  const start = bytes.subarray(at + 2, at + 2 + delimiter.length)
  if (start.equals(delimiter)) throw newAmbiguousBoundary()
  const isCut = start.length < delimiter.length && delimiter.subarray(0, start.length).equals(start)
  return isCut ? undefined : at
}

/** The header of a part. A part with a filename, or of type `application/octet-stream`, is a file. */
export type PartHeader = { name: string; filename: string | undefined; isFile: boolean; charset: string | undefined }

/** The header of a file as nearly every client writes it, read by one expression. Others are read line by line. */
const usualFileHeader =
  /^content-disposition: form-data; name="([^"\\\r\n]*)"; filename="([^"\\\r\n]*)"(?:\r\ncontent-type: [^\r\n]*)?$/i

/** Returns undefined for a part that is no form field: without a name, or with another disposition. */
function readPartHeader(text: string): PartHeader | undefined {
  const [, usualName, usualFilename] = usualFileHeader.exec(text) ?? []
  if (usualName !== undefined && usualFilename !== undefined) {
    return { name: usualName, filename: toBaseName(usualFilename), isFile: true, charset: undefined }
  }
  if (hasOddLines(text)) throw malformed('The header of a part has a line that parsers read differently.')
  const unfolded = /\n[ \t]/.test(text) ? text.replaceAll(/\r\n[ \t]+/g, ' ') : text
  const lines = unfolded.split('\r\n')
  if (!identityEncoding.test(findHeader(lines, 'content-transfer-encoding') ?? 'binary')) {
    throw malformed('A part of the form has a content-transfer-encoding other than 7bit, 8bit or binary.')
  }
  const disposition = findHeader(lines, 'content-disposition')
  if (disposition === undefined || !/^form-data\s*(;|$)/i.test(disposition)) return undefined
  const params = listParams(disposition)
  const names = params.filter(([key]) => key === 'name' || key.startsWith('name*'))
  if (names.length > 1 || names.some(([key]) => key !== 'name')) throw malformed('A part of the form has two names.')
  const name = names[0]?.[1]
  if (name === undefined) return undefined
  const filename = readExtended(findParam(params, 'filename*')) ?? findParam(params, 'filename')
  if (filename !== undefined) return { name, filename: toBaseName(filename), isFile: true, charset: undefined }
  const type = findHeader(lines, 'content-type') ?? ''
  return {
    name,
    filename,
    isFile: /^application\/octet-stream\s*(;|$)/i.test(type),
    charset: findParam(listParams(type), 'charset'),
  }
}

/** Encodings that leave the content as it is. Some parsers decode others, such as Django base64; most ignore them all. */
const identityEncoding = /^(7bit|8bit|binary)$/i

/**
 * Whether a line ends without both of its characters, or has a blank before its colon, or the first line begins with
 * one: some parsers accept that.
 */
const hasOddLines = (header: string) => /^[ \t]|(?<!\r)\n|\r(?!\n)|(?:^|\r\n)[^:\r\n]*[ \t]:/.test(header)

function findHeader(lines: string[], name: string): string | undefined {
  let found: string | undefined
  for (const line of lines) {
    if (line[name.length] !== ':' || line.slice(0, name.length).toLowerCase() !== name) continue
    if (found !== undefined) throw malformed(`A part of the form has more than one ${name} header.`)
    found = line.slice(name.length + 1).trim()
  }
  return found
}

type Param = [name: string, value: string]

const paramPattern = /;\s*([^\s=;"]+)\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^\s;]*))/gs

/** Reads parameters such as `; name="a"; filename=b`, in their order. */
function listParams(header: string): Param[] {
  const params: Param[] = []
  paramPattern.lastIndex = 0
  for (let match = paramPattern.exec(header); match !== null; match = paramPattern.exec(header)) {
    const [, name = '', quoted, plain] = match
    params.push([name.toLowerCase(), quoted === undefined ? (plain ?? '') : unescapeQuoted(quoted)])
  }
  return params
}

/** Parses the value of a Content-Type; undefined when it is no media type. */
export function parseMediaType(text: string): MIMEType | undefined {
  try {
    return new MIMEType(text)
  } catch {
    return undefined
  }
}

/** The number of parameters of a header with this name. */
export const countParams = (header: string, wanted: string): number =>
  listParams(header).filter(([name]) => name === wanted).length

/** Returns the first of several parameters with the same name. */
const findParam = (params: Param[], name: string): string | undefined => params.find(([key]) => key === name)?.[1]

/**
 * Unescapes `\"` and `\\`. Any other backslash stays, because clients send Windows paths without escaping them.
 * Browsers write a quote in a name as `%22`, which stays too.
 */
const unescapeQuoted = (text: string) => (text.includes('\\') ? text.replaceAll(/\\(["\\])/g, '$1') : text)

/** Decodes a value such as `utf-8''na%C3%AFve.txt`; undefined when it is invalid. */
function readExtended(value: string | undefined): string | undefined {
  if (value === undefined) return undefined
  const [, charset, encoded] = /^([\w-]+)'[\w-]*'(.*)$/s.exec(value) ?? []
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

/** Some clients send the whole path of the file on their machine. */
const toBaseName = (filename: string) =>
  filename.slice(Math.max(filename.lastIndexOf('/'), filename.lastIndexOf('\\')) + 1)
