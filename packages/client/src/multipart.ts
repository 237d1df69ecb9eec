import { requireNotEmpty } from './content.ts'
import type { Form } from './transport/transport.ts'

/** Encodes a form as multipart/form-data, for transports that send bytes. */
export function newMultipart({ fields, content }: Form, boundary: string) {
  const head = encode(
    Object.entries(fields)
      .map(([name, value]) => `--${boundary}\r\nContent-Disposition: form-data; name="${name}"\r\n\r\n${value}\r\n`)
      .join('') +
      `--${boundary}\r\nContent-Disposition: form-data; name="file"; filename="${escapeName(content.name ?? '')}"\r\n` +
      'Content-Type: application/octet-stream\r\n\r\n',
  )
  const tail = encode(`\r\n--${boundary}--\r\n`)
  return {
    type: `multipart/form-data; boundary=${boundary}`,
    length: content.length === undefined ? undefined : head.length + content.length + tail.length,
    head,
    tail,
    async *readContent(options?: { canReuseChunks: boolean }) {
      let bytes = 0
      for await (const chunk of content.read(options)) {
        bytes += chunk.length
        yield chunk
      }
      requireNotEmpty(bytes, 'The stream')
    },
  }
}

const encode = (text: string) => new TextEncoder().encode(text)

/** Escapes a file name as browsers do, and also the backslash, which some parsers treat as an escape character. */
const escapeName = (name: string) => name.replace(/["\\\r\n\0]/g, (char) => encodeURIComponent(char))
