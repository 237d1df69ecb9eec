import { readFileSync } from 'node:fs'
import { crc32 } from 'node:zlib'
import type { Content } from './upload.ts'

const stampBytes = 16

/** The bytes of a picture with a comment that can be changed, for new content with the same pixels. */
export function readPicture(file: string): { newContent(): Content } {
  const bytes = readFileSync(file)
  const isJpeg = bytes[0] === 0xff
  // The comment follows the start marker of a JPEG or the header of a PNG.
  const at = isJpeg ? 2 : 33
  const rest = bytes.subarray(at)
  return {
    newContent() {
      const comment = isJpeg ? newJpegComment() : newPngComment()
      const head = Buffer.concat([bytes.subarray(0, at), comment.bytes])
      const stamp = (text: string) => comment.write(head.subarray(at), text.padStart(stampBytes, '0'))
      stamp('')
      return { bytes: head.length + rest.length, pieces: [head, rest], stamp }
    },
  }
}

type Comment = { bytes: Buffer; write(comment: Buffer, text: string): void }

function newJpegComment(): Comment {
  const bytes = Buffer.alloc(4 + stampBytes)
  bytes.writeUInt16BE(0xfffe, 0)
  bytes.writeUInt16BE(2 + stampBytes, 2)
  return { bytes, write: (comment, text) => comment.write(text, 4, stampBytes, 'latin1') }
}

function newPngComment(): Comment {
  const name = 'tEXtComment\0'
  const bytes = Buffer.alloc(4 + name.length + stampBytes + 4)
  bytes.writeUInt32BE(name.length - 4 + stampBytes, 0)
  bytes.write(name, 4, 'latin1')
  return {
    bytes,
    write(comment, text) {
      const end = 4 + name.length + stampBytes
      comment.write(text, 4 + name.length, stampBytes, 'latin1')
      comment.writeUInt32BE(crc32(comment.subarray(4, end)), end)
    },
  }
}
