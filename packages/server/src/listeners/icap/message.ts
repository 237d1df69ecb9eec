import { MIMEType } from 'node:util'
import { toContentName } from '../../domain/scans/check-submission.ts'
import { maxBytes } from '../listener-scan.ts'
import type { Encapsulated } from './icap-parser.ts'
import type { IcapRequest } from './request.ts'

/** What we have to know of an HTTP message: where it goes to the scan, and what the scan could not see. */
export type Message = {
  contentName: string | null
  obstacle: string | undefined
  /** Of a form with files, whose boundary this is. */
  boundary: string | undefined
}

/** Those that the engines open by themselves. Behind any other one nobody would have looked. */
const openEncodings = ['identity', 'gzip', 'x-gzip']

export function readMessage({ method }: IcapRequest, headers: Encapsulated): Message {
  const own = headers[method === 'REQMOD' ? 'req-hdr' : 'res-hdr']?.toString('latin1') ?? ''
  const asked = headers['req-hdr']?.toString('latin1') ?? ''
  const boundary = method === 'REQMOD' ? findBoundary(own) : undefined
  return { contentName: findName(asked), obstacle: findObstacle(own, boundary !== undefined), boundary }
}

function findBoundary(head: string): string | undefined {
  for (const text of listLines(head, 'content-type')) {
    const [, type] = /^\s*(multipart\/form-data\s*;.*)$/i.exec(text) ?? []
    const boundary = type === undefined ? undefined : findMediaType(type)?.params.get('boundary')
    if (boundary) return boundary
  }
  return undefined
}

function findMediaType(text: string): MIMEType | undefined {
  try {
    return new MIMEType(text)
  } catch {
    return undefined
  }
}

function findObstacle(head: string, isForm: boolean): string | undefined {
  const encodings = listHeader(head, 'content-encoding').filter((encoding) => encoding !== '')
  // The files of a form are found as they come, and not inside of something else.
  if (isForm && encodings.some((encoding) => encoding !== 'identity')) return 'UnsupportedEncoding'
  // Two of them, one in the other, are more than an engine is told.
  if (encodings.length > 1 || !encodings.every((encoding) => openEncodings.includes(encoding))) {
    return 'UnsupportedEncoding'
  }
  return listHeader(head, 'content-length').some((length) => Number(length) > maxBytes) ? 'ContentTooLarge' : undefined
}

/** A line that continues the one before it belongs to it. */
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

/** The last step of the path, as far as it can be read as a name. */
function findName(head: string): string | null {
  const [, path = ''] = /^\S+ (?:[a-z][a-z\d+.-]*:\/\/[^/?#\s]*)?([^?#\s]*)/i.exec(head) ?? []
  const last = path.slice(path.lastIndexOf('/') + 1)
  try {
    return toContentName({ fields: {}, partName: decodeURIComponent(last) })
  } catch {
    return null
  }
}
