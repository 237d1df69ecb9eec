/** Bytes that tell a picture from anything else. */
export const headBytes = 12

/** JPEG, PNG, GIF, WebP: the service takes nothing else, and tells by the same bytes. */
export function isImageHead(head: Buffer): boolean {
  const text = head.toString('latin1', 0, headBytes)
  return (
    text.startsWith('\xff\xd8\xff') ||
    text.startsWith('\x89PNG') ||
    text.startsWith('GIF8') ||
    (text.startsWith('RIFF') && text.endsWith('WEBP'))
  )
}
