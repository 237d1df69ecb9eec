import { type Layout, noSections, parseEncapsulated } from '../../../domain/icap/encapsulated.ts'
import { findOne, IcapFault, listValues, type ParsedHeaders, parseHeaders } from '../../../domain/icap/icap-headers.ts'

export type IcapMethod = 'RESPMOD' | 'REQMOD'

export type IcapResponse = {
  status: number
  headers: ParsedHeaders
  layout: Layout
  /** A response has no preview. */
  preview: undefined
  /** The server closes the connection after the response. */
  closes: boolean
}

/** Parses the head of a response, without the empty line at its end. Errors and `100 Continue` may have no sections. */
export function parseResponse(head: string): IcapResponse {
  const [first = '', ...lines] = head.split('\r\n')
  const [, digits] = /^ICAP\/1\.\d ([1-5]\d\d)(?: .*)?$/.exec(first) ?? []
  if (digits === undefined) throw new IcapFault(400, 'The status line is not valid.')
  const headers = parseHeaders(lines, 'kept')
  const encapsulated = findOne(headers, 'encapsulated')
  return {
    status: Number(digits),
    headers,
    layout:
      encapsulated === undefined
        ? noSections
        : parseEncapsulated(encapsulated, {
            headers: ['req-hdr', 'res-hdr'],
            bodies: ['req-body', 'res-body', 'opt-body', 'null-body'],
          }),
    preview: undefined,
    closes: listValues(headers, 'connection').includes('close'),
  }
}

/** The service that requests are for. */
export type IcapService = { url: string; host: string; method: IcapMethod; userAgent: string }

export const toOptionsRequest = ({ url, host, userAgent }: IcapService): Buffer =>
  toHead([`OPTIONS ${url} ICAP/1.0`, `Host: ${host}`, `User-Agent: ${userAgent}`, 'Encapsulated: null-body=0'])

/** The HTTP message that carries the content: a download for RESPMOD, an upload for REQMOD. */
export function toCarrier(method: IcapMethod, fileName: string, bytes: number) {
  const target = `http://assay.invalid/${encodeURIComponent(fileName)}`
  // A precise media type could be one that the server does not scan. The content tells what it is.
  const body = ['Content-Type: application/octet-stream', `Content-Length: ${bytes}`]
  return method === 'RESPMOD'
    ? {
        request: toHead([`GET ${target} HTTP/1.1`, 'Host: assay.invalid']),
        response: toHead(['HTTP/1.1 200 OK', ...body]),
      }
    : { request: toHead([`POST ${target} HTTP/1.1`, 'Host: assay.invalid', ...body]), response: undefined }
}

/** The head of a request with the message around the content; the body follows in chunks. */
export function toModRequest(
  { url, host, method, userAgent }: IcapService,
  { request, response }: ReturnType<typeof toCarrier>,
  preview: number | undefined,
): Buffer {
  const offsets =
    response === undefined
      ? `req-hdr=0, req-body=${request.length}`
      : `req-hdr=0, res-hdr=${request.length}, res-body=${request.length + response.length}`
  const head = toHead([
    `${method} ${url} ICAP/1.0`,
    `Host: ${host}`,
    `User-Agent: ${userAgent}`,
    'Allow: 204',
    ...(preview === undefined ? [] : [`Preview: ${preview}`]),
    `Encapsulated: ${offsets}`,
  ])
  return Buffer.concat(response === undefined ? [head, request] : [head, request, response])
}

const toHead = (lines: string[]) => Buffer.from(`${lines.join('\r\n')}\r\n\r\n`, 'latin1')
