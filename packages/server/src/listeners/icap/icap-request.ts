import { parseMediaType } from '../../domain/content/multipart.ts'
import {
  type Encapsulated,
  findOne,
  IcapFault,
  type Layout,
  listValues,
  parseEncapsulated,
  parseHeaders,
  type SectionRules,
} from '../../domain/icap/icap-message.ts'
import { toContentName } from '../../domain/scans/check-submission.ts'

export type IcapRequest = {
  method: 'OPTIONS' | 'REQMOD' | 'RESPMOD'
  /** Name of the service, from the path of the address. */
  service: string
  layout: Layout
  /** Bytes of the body that the client sends before it waits for a response; undefined if it sends all of it. */
  preview: number | undefined
  /** The client keeps a copy of the message and accepts 204 at any time. */
  allows204: boolean
  /** The client closes the connection after the response. */
  closes: boolean
}

const allowedSections: Record<IcapRequest['method'], SectionRules> = {
  REQMOD: { headers: ['req-hdr'], bodies: ['req-body', 'null-body'] },
  RESPMOD: { headers: ['req-hdr', 'res-hdr'], bodies: ['res-body', 'null-body'] },
  OPTIONS: { headers: [], bodies: ['null-body'] },
}

const maxPreviewBytes = 1024 * 1024

/** Parses the head of a request, without the empty line at its end. */
export function parseRequest(head: string): IcapRequest {
  const [first = '', ...lines] = head.split('\r\n')
  const [, method = '', address = '', version = ''] = /^([A-Z]{1,20}) (\S{1,8192}) (ICAP\/\d\.\d)$/.exec(first) ?? []
  if (method === '') throw new IcapFault(400, 'The request line is not valid.')
  if (version !== 'ICAP/1.0') throw new IcapFault(505, 'The only supported version is ICAP/1.0.')
  if (method !== 'OPTIONS' && method !== 'REQMOD' && method !== 'RESPMOD') {
    throw new IcapFault(405, 'The supported methods are OPTIONS, REQMOD and RESPMOD.')
  }
  const headers = parseHeaders(lines, 'rejected')
  const encapsulated = findOne(headers, 'encapsulated') ?? (method === 'OPTIONS' ? 'null-body=0' : undefined)
  if (encapsulated === undefined) throw new IcapFault(400, 'The Encapsulated header is missing.')
  return {
    method,
    service: toService(address),
    layout: parseEncapsulated(encapsulated, allowedSections[method]),
    preview: toPreview(findOne(headers, 'preview')),
    allows204: listValues(headers, 'allow').includes('204'),
    closes: listValues(headers, 'connection').includes('close'),
  }
}

function toPreview(text: string | undefined): number | undefined {
  if (text === undefined) return undefined
  if (!/^\d{1,7}$/.test(text) || Number(text) > maxPreviewBytes) {
    throw new IcapFault(400, `The Preview header must be a number of bytes up to ${maxPreviewBytes}.`)
  }
  return Number(text)
}

/** Returns the path of an address such as `icap://host:1344/avscan?allow=1`. Some clients send the path alone. */
function toService(address: string): string {
  const [, path] = /^(?:icaps?:\/\/[^/?#]*)?\/?([^?#]*)/i.exec(address) ?? []
  return (path ?? '').replace(/\/$/, '')
}

/** The facts about an HTTP message that its scan needs. */
export type Message = {
  contentName: string | null
  /** The reason why the body cannot be scanned, if there is one. */
  obstacle: 'UnsupportedEncoding' | 'ContentTooLarge' | undefined
  /** The boundary of a form, whose files are scanned one by one. */
  boundary: string | undefined
  /** The body is a file, of whose beginning browsers make no use before its end has come. */
  isDownload: boolean
}

/** Media types of files. Browsers render others, such as pages, scripts and pictures, while they arrive. */
const downloadType = /^(?:application\/(?!.*(?:html|xml|script|json|pdf))|audio\/|video\/|font\/)/

/** Encodings that the engines decode. Content in any other encoding would not really be scanned. */
const supportedEncodings = ['identity', 'gzip', 'x-gzip']

/** Reads from the headers of an HTTP message what its scan needs. */
export function readMessage({ method }: IcapRequest, headers: Encapsulated, maxBytes: number): Message {
  const ownHead = headers[method === 'REQMOD' ? 'req-hdr' : 'res-hdr']?.toString('latin1') ?? ''
  const requestHead = headers['req-hdr']?.toString('latin1') ?? ''
  const boundary = method === 'REQMOD' ? findBoundary(ownHead) : undefined
  const types = listHeader(ownHead, 'content-type')
  return {
    contentName: findName(requestHead),
    obstacle: findObstacle(ownHead, { isForm: boundary !== undefined, maxBytes }),
    boundary,
    isDownload: types.length > 0 && types.every((type) => downloadType.test(type)),
  }
}

function findBoundary(head: string): string | undefined {
  for (const text of listLines(head, 'content-type')) {
    const [, type] = /^\s*(multipart\/form-data\s*;.*)$/i.exec(text) ?? []
    const boundary = type === undefined ? undefined : parseMediaType(type)?.params.get('boundary')
    if (boundary) return boundary
  }
  return undefined
}

function findObstacle(head: string, { isForm, maxBytes }: { isForm: boolean; maxBytes: number }): Message['obstacle'] {
  const encodings = listHeader(head, 'content-encoding').filter((encoding) => encoding !== '')
  // The parser finds the files of a form only in a body that is not encoded.
  if (isForm && encodings.some((encoding) => encoding !== 'identity')) return 'UnsupportedEncoding'
  // Engines decode one encoding, not two nested ones.
  if (encodings.length > 1 || !encodings.every((encoding) => supportedEncodings.includes(encoding))) {
    return 'UnsupportedEncoding'
  }
  return listHeader(head, 'content-length').some((length) => Number(length) > maxBytes) ? 'ContentTooLarge' : undefined
}

/** Lists the values of a header, with continuation lines joined. */
const listLines = (head: string, name: string): string[] =>
  head
    .replaceAll(/\r\n[ \t]+/g, ' ')
    .split('\r\n')
    .slice(1)
    .filter((line) => line.slice(0, line.indexOf(':')).trim().toLowerCase() === name)
    .map((line) => line.slice(line.indexOf(':') + 1))

const listHeader = (head: string, name: string): string[] =>
  listLines(head, name)
    .flatMap((value) => value.split(','))
    .map((value) => value.trim().toLowerCase())

/** The last segment of the path, if it can be decoded and is a valid name. */
function findName(head: string): string | null {
  const [, path = ''] = /^\S+ (?:[a-z][a-z\d+.-]*:\/\/[^/?#\s]*)?([^?#\s]*)/i.exec(head) ?? []
  const last = path.slice(path.lastIndexOf('/') + 1)
  try {
    return toContentName({ fields: {}, partName: decodeURIComponent(last) })
  } catch {
    return null
  }
}
