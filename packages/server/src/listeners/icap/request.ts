import { type Layout, parseEncapsulated } from './encapsulated.ts'
import { IcapFault } from './fault.ts'

export type IcapRequest = {
  method: 'OPTIONS' | 'REQMOD' | 'RESPMOD'
  /** Name of the service, from the path. */
  service: string
  layout: Layout
  /** How much of the body comes before the client waits for word. Undefined: all of it comes. */
  preview: number | undefined
  /** The client has kept the message and takes 204 for an answer at any time. */
  allows204: boolean
  /** Hangs up after the answer. */
  closes: boolean
}

const maxPreviewBytes = 1024 * 1024

/** The head of a request, without the empty line at its end. */
export function parseRequest(head: string): IcapRequest {
  const [first = '', ...lines] = head.split('\r\n')
  const [, method = '', address = '', version = ''] = /^([A-Z]{1,20}) (\S{1,8192}) (ICAP\/\d\.\d)$/.exec(first) ?? []
  if (method === '') throw new IcapFault(400, 'The request line cannot be read.')
  if (version !== 'ICAP/1.0') throw new IcapFault(505, 'Only ICAP/1.0 is spoken here.')
  if (method !== 'OPTIONS' && method !== 'REQMOD' && method !== 'RESPMOD') {
    throw new IcapFault(405, 'The methods are OPTIONS, REQMOD and RESPMOD.')
  }
  const headers = parseHeaders(lines)
  const encapsulated = findOne(headers, 'encapsulated') ?? (method === 'OPTIONS' ? 'null-body=0' : undefined)
  if (encapsulated === undefined) throw new IcapFault(400, 'The Encapsulated header is missing.')
  return {
    method,
    service: toService(address),
    layout: parseEncapsulated(method, encapsulated),
    preview: toPreview(findOne(headers, 'preview')),
    allows204: listValues(headers, 'allow').includes('204'),
    closes: listValues(headers, 'connection').includes('close'),
  }
}

function parseHeaders(lines: string[]): Map<string, string[]> {
  const headers = new Map<string, string[]>()
  for (const line of lines) {
    const [, name, value] = /^([!#$%&'*+.^_`|~\w-]+):[ \t]*(.*?)[ \t]*$/.exec(line) ?? []
    // A line that continues the one before it is told apart by some and not by others.
    if (name === undefined || value === undefined) throw new IcapFault(400, 'A header line cannot be read.')
    const known = headers.get(name.toLowerCase())
    if (known === undefined) headers.set(name.toLowerCase(), [value])
    else known.push(value)
  }
  return headers
}

function findOne(headers: Map<string, string[]>, name: string): string | undefined {
  const values = headers.get(name) ?? []
  if (values.length > 1) throw new IcapFault(400, `The ${name} header is there more than once.`)
  return values[0]
}

const listValues = (headers: Map<string, string[]>, name: string) =>
  (headers.get(name) ?? []).flatMap((value) => value.toLowerCase().split(',')).map((value) => value.trim())

function toPreview(text: string | undefined): number | undefined {
  if (text === undefined) return undefined
  if (!/^\d{1,7}$/.test(text) || Number(text) > maxPreviewBytes) {
    throw new IcapFault(400, `The Preview header must be a number of bytes up to ${maxPreviewBytes}.`)
  }
  return Number(text)
}

/** `icap://host:1344/avscan?allow=1`: some clients send the path alone. */
function toService(address: string): string {
  const [, path] = /^(?:icaps?:\/\/[^/?#]*)?\/?([^?#]*)/i.exec(address) ?? []
  return (path ?? '').replace(/\/$/, '')
}
