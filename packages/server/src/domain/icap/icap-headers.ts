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
