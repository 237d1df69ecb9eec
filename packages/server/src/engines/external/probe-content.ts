import { createHash } from 'node:crypto'
import type { Content } from '../../domain/content/content.ts'

const text = Buffer.from('A harmless line by which Assay finds out whether an engine answers.\n')
const toHash = (name: 'sha1' | 'sha256') => createHash(name).update(text).digest('hex')

/** Content that every engine should call clean. */
export function newProbeContent(): Content {
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
