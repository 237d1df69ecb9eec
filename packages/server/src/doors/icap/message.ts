import { toContentName } from '../../domain/scans/submission.ts'
import { maxBytes } from '../door-scan.ts'
import type { Encapsulated } from './icap-parser.ts'
import type { IcapRequest } from './request.ts'

/** What we have to know of an HTTP message: where it goes to the scan, and what the scan could not see. */
export type Message = { contentName: string | null; obstacle: string | undefined }

/** Those that the engines open by themselves. Behind any other one nobody would have looked. */
const openEncodings = ['identity', 'gzip', 'x-gzip']

export function readMessage({ method }: IcapRequest, headers: Encapsulated): Message {
  const own = headers[method === 'REQMOD' ? 'req-hdr' : 'res-hdr']?.toString('latin1') ?? ''
  const asked = headers['req-hdr']?.toString('latin1') ?? ''
  return { contentName: findName(asked), obstacle: findObstacle(own) }
}

function findObstacle(head: string): string | undefined {
  const encodings = listHeader(head, 'content-encoding').filter((encoding) => encoding !== '')
  // Two of them, one in the other, are more than an engine is told.
  if (encodings.length > 1 || !encodings.every((encoding) => openEncodings.includes(encoding))) {
    return 'UnsupportedEncoding'
  }
  return listHeader(head, 'content-length').some((length) => Number(length) > maxBytes) ? 'ContentTooLarge' : undefined
}

/** A line that continues the one before it belongs to it. */
const listHeader = (head: string, name: string): string[] =>
  head
    .replaceAll(/\r\n[ \t]+/g, ' ')
    .split('\r\n')
    .slice(1)
    .filter((line) => line.slice(0, line.indexOf(':')).trim().toLowerCase() === name)
    .flatMap((line) => line.slice(line.indexOf(':') + 1).split(','))
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
