import { requireSome } from './content.ts'
import type { Form } from './transport/transport.ts'

/** A form as bytes, for those who do not have a browser to write it. */
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
    async *readContent(reader?: { isDoneWithEach: boolean }) {
      let bytes = 0
      for await (const chunk of content.read(reader)) {
        bytes += chunk.length
        yield chunk
      }
      requireSome(bytes, 'The stream')
    },
  }
}

const encode = (text: string) => new TextEncoder().encode(text)

/** As browsers do; a backslash too, which some parsers take for an escape. */
const escapeName = (name: string) => name.replace(/["\\\r\n\0]/g, (char) => encodeURIComponent(char))
