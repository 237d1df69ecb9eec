import { fileTypeFromBuffer } from 'file-type'
import { newCache } from '../new-cache.ts'
import { findBinaryKind, findZipKind } from './binary-kind.ts'
import { type Content, type Description, headBytes } from './content.ts'
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
 * The first two bytes of each signature of the library file-type, in hex. The library compares content with all of its
 * signatures, one after the other, in 20 to 60 µs; most content that it does not know differs in two bytes already.
 */
const firstBytePairs = `
  0000 0001 0061 0400 0422 0606 060e 0b77 1a45 1f8b 1f9d 1fa0 213c 2142 2321 2446 2521 2550 28b5 2d2d 2e52 3026 3037
  377a 3842 3c3f 4143 4152 4245 424c 424d 4250 425a 4357 4372 4452 4453 4578 464c 464f 4652 4655 4657 4749 4944 4949
  494d 4953 4954 4b61 4c00 4c5a 4d41 4d4d 4d50 4d53 4d54 4d5a 4e45 4f54 4f62 4f67 5041 504b 5245 5249 5261 5351 5745
  60ea 626f 6361 664c 6769 676c 6963 7265 736f 7474 774f 7776 7801 7b5c 7e10 7e18 7f45 8950 a1b2 ab4b c5d0 c771 cafe
  cefa cffa d0cf d4c3 edab efbb fd37 feed feff ff0a ff4f ffd8`

const isFirstBytePair = new Uint8Array(2 ** 16)
for (const start of firstBytePairs.trim().split(/\s+/)) isFirstBytePair[Number.parseInt(start, 16)] = 1
// Eleven bits that are set begin a frame of MPEG audio.
isFirstBytePair.fill(1, 0xffe0)

/** Signatures that lie further in. Of a longer one, two bytes are compared. */
const laterSignatures = (
  [
    [2, '-l'],
    [2, "'\n"],
    [4, 'fr'],
    [4, 'md'],
    [4, 'mo'],
    [4, 'wi'],
    [4, 'ft'],
    [7, '**'],
    [34, 'LP'],
    [36, 'ac'],
    [44, 'SC'],
    [60, 'BO'],
    [128, 'DI'],
    [188, 'G'],
    [196, 'G'],
    [257, 'us'],
    [257, '\0\0'],
    [32_769, 'CD'],
  ] as const
).map(([at, text]) => ({ at, first: text.charCodeAt(0), second: text.length === 1 ? undefined : text.charCodeAt(1) }))

/** Whether the library file-type may know content with this head. The library takes bytes behind the end for zeros. */
export function mayKnow(head: Buffer): boolean {
  if (isFirstBytePair[((head[0] ?? 0) << 8) | (head[1] ?? 0)] === 1) return true
  for (const { at, first, second } of laterSignatures) {
    if ((head[at] ?? 0) === first && (second === undefined || (head[at + 1] ?? 0) === second)) return true
  }
  return false
}
