import { fileTypeFromBuffer } from 'file-type'
import { LRUCache } from 'lru-cache'
import { findBinaryKind, findZipKind } from './binary-kind.ts'
import type { Content } from './content.ts'
import { findText, findTextKind } from './text-kind.ts'

/** What detection may look at: an ISO image says so at 36 KB, and an Office document within its first entries. */
export const headBytes = 65_536

const unknown = 'application/octet-stream'

/**
 * The media type, told from the content alone: never from a name or from what the sender claims. `head` holds the first
 * bytes (at most `headBytes` of them are read), `bytes` is the length of the whole. Types are named as file(1) names
 * them; kinds of text carry their charset. Never throws.
 */
export async function findMediaType(head: Buffer, bytes: number): Promise<string> {
  const seen = head.length > headBytes ? head.subarray(0, headBytes) : head
  if (seen.length === 0) return unknown
  // Text first: it is the common small content, and the library below knows none of it.
  const text = findText(seen, bytes > seen.length)
  if (text !== undefined) return toTextType(findTextKind(text), text.charset)
  return findBinaryKind(seen) ?? findZipKind(seen) ?? (await findBySignature(seen)) ?? findLatePdf(seen) ?? unknown
}

/** A PDF or an archive may consist of ASCII only: such a type is no kind of text and has no charset. */
const toTextType = (kind: string, charset: string) =>
  kind.startsWith('text/') || textual.has(kind) ? `${kind}; charset=${charset}` : kind

const textual = new Set([
  'application/javascript',
  'application/json',
  'application/mbox',
  'application/x-ndjson',
  'application/x-subrip',
  'image/svg+xml',
  'message/news',
  'message/rfc822',
])

/** What the library knows, under the name that file(1) gives it. */
async function findBySignature(head: Buffer): Promise<string | undefined> {
  try {
    const type = (await fileTypeFromBuffer(head))?.mime.split(';')[0]?.toLowerCase()
    return type === undefined ? undefined : (commonNames[type] ?? type)
  } catch {
    // A cut or broken container: it is told from the start, so there is nothing more to learn.
    return undefined
  }
}

const commonNames: Record<string, string> = {
  'application/eps': 'application/postscript',
  'application/lzip': 'application/x-lzip',
  'application/x-deb': 'application/vnd.debian.binary-package',
  'application/x-rar-compressed': 'application/x-rar',
  'application/x-sqlite3': 'application/vnd.sqlite3',
  'application/x-unix-archive': 'application/x-archive',
  'audio/aiff': 'audio/x-aiff',
  'audio/ape': 'audio/x-ape',
  'audio/wav': 'audio/x-wav',
  'font/otf': 'application/vnd.ms-opentype',
  'font/ttf': 'font/sfnt',
  'image/icns': 'image/x-icns',
  'image/x-icon': 'image/vnd.microsoft.icon',
  'video/matroska': 'video/x-matroska',
  'video/vnd.avi': 'video/x-msvideo',
}

/** Readers accept a PDF behind a little of something else, and senders of malware know it. */
const findLatePdf = (head: Buffer) => (head.subarray(0, 1024).includes('%PDF-') ? 'application/pdf' : undefined)

/** What is told of content in every result, whatever is found in it. */
export type Description = { contentType: string; hashes: { hash_sha1: string; hash_sha256: string } }

/** SHA-256 decides the rest: content that was seen before is not hashed and looked at again. */
export function makeDescriber({ entries }: { entries: number }) {
  const known = entries === 0 ? undefined : new LRUCache<string, Description>({ max: entries })

  return async (content: Content): Promise<Description> => {
    const found = known?.get(content.sha256)
    if (found !== undefined) return found
    const contentType = await findMediaType(content.head, content.bytes)
    const description = { contentType, hashes: { hash_sha1: content.sha1, hash_sha256: content.sha256 } }
    known?.set(content.sha256, description)
    return description
  }
}

export type Describer = ReturnType<typeof makeDescriber>

/** The media type of the four image formats we take, told from the first bytes alone; undefined for anything else. */
export function findImageFormat(head: Buffer): string | undefined {
  if (startsWith(head, 0, [0xff, 0xd8, 0xff])) return 'image/jpeg'
  if (startsWith(head, 0, [0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a])) return 'image/png'
  const six = head.toString('latin1', 0, 6)
  if (six === 'GIF87a' || six === 'GIF89a') return 'image/gif'
  if (head.toString('latin1', 0, 4) === 'RIFF' && head.toString('latin1', 8, 12) === 'WEBP') return 'image/webp'
  return undefined
}

const startsWith = (head: Buffer, at: number, bytes: number[]) => bytes.every((byte, i) => head[at + i] === byte)
