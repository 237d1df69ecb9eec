/**
 * The media type of content in one of the four supported image formats, by its first bytes. This file stays free of
 * imports, because the confined image processes load it.
 */
export function findImageFormat(head: Buffer): string | undefined {
  if (startsWith(head, [0xff, 0xd8, 0xff])) return 'image/jpeg'
  if (startsWith(head, [0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a])) return 'image/png'
  const six = head.toString('latin1', 0, 6)
  if (six === 'GIF87a' || six === 'GIF89a') return 'image/gif'
  if (head.toString('latin1', 0, 4) === 'RIFF' && head.toString('latin1', 8, 12) === 'WEBP') return 'image/webp'
  return undefined
}

const startsWith = (head: Buffer, bytes: number[]) => bytes.every((byte, i) => head[i] === byte)
