import { createHash } from 'node:crypto'
import type { Content } from '../../domain/content/content.ts'

const line = Buffer.from('A harmless line by which Assay finds out whether an engine answers.\n')

/** Content that every engine should call clean: one line, or so many bytes of lines. */
export function newProbeContent(bytes = line.length): Content {
  const text = Buffer.alloc(bytes, line)
  const toHash = (name: 'sha1' | 'sha256') => createHash(name).update(text).digest('hex')
  return {
    bytes: text.length,
    head: text,
    sha1: toHash('sha1'),
    sha256: toHash('sha256'),
    isInMemory: true,
    whole: text,
    async *read(start = 0, end = text.length) {
      yield text.subarray(start, end)
    },
    async release() {},
  }
}
