type HeaderSection = 'req-hdr' | 'res-hdr'
type BodySection = 'req-body' | 'res-body' | 'null-body' | 'opt-body'

/** The headers of the HTTP message as they arrived, each with the empty line at its end. */
export type Encapsulated = { [name in HeaderSection]?: Buffer }

/** The sections of a message: its headers in order, with their lengths, and the kind of body that follows. */
export type Layout = { headers: { name: HeaderSection; bytes: number }[]; body: BodySection }

/** The sections that a message may carry, in this order. */
export type SectionRules = { headers: HeaderSection[]; bodies: BodySection[] }

export const noSections: Layout = { headers: [], body: 'null-body' }

/** Limit on the headers of one message, all sections together. */
const maxHeaderBytes = 128 * 1024

/** Parses `req-hdr=0, res-hdr=137, res-body=296`. Each section ends at the offset of the next one. */
export function parseEncapsulated(text: string, rules: SectionRules): Layout {
  const sections = text.split(',').map(toSection)
  const body = sections.at(-1)
  if (body === undefined || !isOneOf(rules.bodies, body.name)) {
    throw newInvalid('does not end with a body that this message may have')
  }
  const headers = sections.slice(0, -1).map(({ name, start }, i) => {
    const bytes = (sections[i + 1]?.start ?? 0) - start
    if (bytes <= 0) throw newInvalid('has offsets that do not increase')
    if (!isOneOf(rules.headers, name)) throw newInvalid('has sections that this message may not have')
    return { name, bytes }
  })
  if (sections[0]?.start !== 0) throw newInvalid('does not start at 0')
  if (body.start > maxHeaderBytes) throw newInvalid(`has more than ${maxHeaderBytes} bytes of headers`)
  const positions = headers.map(({ name }) => rules.headers.indexOf(name))
  const inOrder = positions.every((position, i) => position > (positions[i - 1] ?? -1))
  if (!inOrder) throw newInvalid('has sections in the wrong order')
  return { headers, body: body.name }
}

const isOneOf = <Name extends string>(names: Name[], name: string): name is Name => names.some((one) => one === name)

function toSection(text: string): { name: string; start: number } {
  const [, name, start] = /^\s*([a-z]{3,4}-[a-z]{3,4})\s*=\s*(\d{1,9})\s*$/i.exec(text) ?? []
  if (name === undefined) throw newInvalid('is not valid')
  return { name: name.toLowerCase(), start: Number(start) }
}

const newInvalid = (what: string) => new IcapFault(400, `The Encapsulated header ${what}.`)

/** A message that the parser rejects. Nothing after it on the connection can be understood. */
export class IcapFault extends Error {
  /** The status with which a server answers such a request. */
  readonly status: 400 | 404 | 405 | 505

  constructor(status: IcapFault['status'], sentence: string) {
    super(sentence)
    this.status = status
  }
}

/** The values of each header, by its name in lower case. */
export type ParsedHeaders = Map<string, string[]>

const maxHeaderLines = 200

/**
 * Parses header lines. Continuation lines of a request are rejected, because programs disagree on their meaning. In a
 * response, where some products list their findings that way, a line end divides them in the value.
 */
export function parseHeaders(lines: string[], continuationLines: 'rejected' | 'kept'): ParsedHeaders {
  if (lines.length > maxHeaderLines) throw new IcapFault(400, `There are more than ${maxHeaderLines} header lines.`)
  const headers: ParsedHeaders = new Map()
  let last: string[] | undefined
  for (const line of lines) {
    const [, name, value] = /^([!#$%&'*+.^_`|~\w-]+):[ \t]*(.*?)[ \t]*$/.exec(line) ?? []
    if (name !== undefined && value !== undefined) {
      last = headers.get(name.toLowerCase()) ?? []
      last.push(value)
      headers.set(name.toLowerCase(), last)
    } else if (continuationLines === 'kept' && last !== undefined && /^[ \t]/.test(line)) {
      last.push(`${last.pop()}\n${line.trim()}`)
    } else throw new IcapFault(400, 'A header line is not valid.')
  }
  return headers
}

export function findOne(headers: ParsedHeaders, name: string): string | undefined {
  const values = headers.get(name) ?? []
  if (values.length > 1) throw new IcapFault(400, `The ${name} header must not be given more than once.`)
  return values[0]
}

/** The elements of a list in lower case. */
export const listValues = (headers: ParsedHeaders, name: string) =>
  (headers.get(name) ?? []).flatMap((value) => value.toLowerCase().split(',')).map((value) => value.trim())

/** The parts of one chunk of a body. */
export const toChunk = (...pieces: Buffer[]): Buffer[] => {
  const bytes = pieces.reduce((sum, piece) => sum + piece.length, 0)
  return [Buffer.from(`${bytes.toString(16)}\r\n`), ...pieces, lineEnd]
}

const lineEnd = Buffer.from('\r\n')

export const lastChunk = Buffer.from('0\r\n\r\n')

/** The last chunk of a preview that holds the whole body. */
export const lastChunkOfWhole = Buffer.from('0; ieof\r\n\r\n')
