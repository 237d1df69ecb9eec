/** Complete images of one pixel, which every decoder accepts. */
const fromBase64 = (text: string) => Buffer.from(text, 'base64')
export const images = {
  'one.png': fromBase64(
    'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==',
  ),
  'one.gif': fromBase64('R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7'),
  'one.webp': fromBase64('UklGRiIAAABXRUJQVlA4IBYAAAAwAQCdASoBAAEADsD+JaQAA3AAAAAA'),
  'one.jpeg': fromBase64(
    '/9j/4AAQSkZJRgABAQEASABIAAD/2wBDAP//////////////////////////////////////////////////////////////////////////' +
      '////////////wgALCAABAAEBAREA/8QAFBABAAAAAAAAAAAAAAAAAAAAAP/aAAgBAQABPxA=',
  ),
}

export type Part = { head: string; content: string | Buffer }

/** Makes the form part of the content, with these parameters after its name and without a Content-Type. */
export const filePart = (content: string | Buffer, parameters = 'filename="content.bin"'): Part => ({
  head: `Content-Disposition: form-data; name="file"; ${parameters}`,
  content,
})

export const textPart = (name: string, content: string): Part => ({
  head: `Content-Disposition: form-data; name="${name}"`,
  content,
})

export const boundary = 'acceptance-7d1f'
export const formType = `multipart/form-data; boundary=${boundary}`

export const toForm = (parts: Part[], delimiter = boundary): Buffer =>
  Buffer.concat([...parts.map((part) => toPart(part, delimiter)), Buffer.from(`--${delimiter}--\r\n`)])

export const toPart = ({ head, content }: Part, delimiter = boundary): Buffer =>
  Buffer.concat([Buffer.from(`--${delimiter}\r\n${head}\r\n\r\n`), Buffer.from(content), Buffer.from('\r\n')])
