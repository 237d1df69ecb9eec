import { fileTypeFromBuffer } from 'file-type'
import { newCache } from '../new-cache.ts'
import { findBinaryKind, findZipKind } from './binary-kind.ts'
import { type Content, type Description, headBytes } from './content.ts'
import { mayKnow } from './library-signatures.ts'
import { findText, findTextKind } from './text-kind.ts'

const unknownType = 'application/octet-stream'

/**
 * Detects the media type by the content alone, never by a name or the sender's claim. `head` holds the first bytes, of
 * which at most `headBytes` are read; `bytes` is the length of the whole content. Types have the names of file(1), and
 * text types have a charset. Never throws.
 */
export async function findMediaType(head: Buffer, bytes: number): Promise<string> {
  const start = head.length > headBytes ? head.subarray(0, headBytes) : head
  if (start.length === 0) return unknownType
  // Text comes first: most small content is text, which the library does not recognise.
  const text = findText(start, bytes > start.length)
  if (text !== undefined) return toTextType(findTextKind(text), text.charset)
  return (
    findBinaryKind(start) ?? findZipKind(start) ?? (await findBySignature(start)) ?? findLatePdf(start) ?? unknownType
  )
}

/** A PDF or an archive may be pure ASCII, but its type is no text type and has no charset. */
const toTextType = (kind: string, charset: string) =>
  kind.startsWith('text/') || textTypes.has(kind) ? `${kind}; charset=${charset}` : kind

const textTypes = new Set([
  'application/javascript',
  'application/json',
  'application/mbox',
  'application/x-ndjson',
  'application/x-subrip',
  'image/svg+xml',
  'message/news',
  'message/rfc822',
])

/** Detects the type with the library file-type, and translates its names to those of file(1). */
async function findBySignature(head: Buffer): Promise<string | undefined> {
  if (!mayKnow(head)) return undefined
  try {
    const type = (await fileTypeFromBuffer(head))?.mime.split(';')[0]?.toLowerCase()
    return type === undefined ? undefined : (commonNames[type] ?? type)
  } catch {
    // The library throws for a container that is cut or broken; its type stays unknown.
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

/** PDF readers accept up to 1 KB before the signature, which senders of malware make use of. */
const findLatePdf = (head: Buffer) => (head.subarray(0, 1024).includes('%PDF-') ? 'application/pdf' : undefined)

/**
 * Describes content, and remembers the description for its account, so that known content is not hashed and inspected
 * again.
 */
export function makeDescriber({ entries }: { entries: number }) {
  const cache = entries === 0 ? undefined : newCache<Description>(entries)

  return async (content: Content, accountId: string | null): Promise<Description> => {
    if (content.description !== undefined) return content.description
    const key = `${accountId ?? ''} ${content.sha256}`
    const cached = cache?.get(key)
    if (cached !== undefined) return cached
    const contentType = await findMediaType(content.head, content.bytes)
    const description = { contentType, hashes: { hash_sha1: content.sha1, hash_sha256: content.sha256 } }
    cache?.set(key, description)
    return description
  }
}

export type Describer = ReturnType<typeof makeDescriber>
