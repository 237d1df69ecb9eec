import { IcapFault } from './fault.ts'

export type BodyEvent =
  | { kind: 'content'; bytes: Buffer }
  /** `isWhole`: the client says that the preview was all there is. */
  | { kind: 'body-end'; isWhole: boolean }

const maxLineBytes = 1024
const maxTrailerBytes = 8 * 1024

/**
 * A chunked body, as far as it is there: `take` returns what happened and what is left, or undefined when it takes more
 * bytes to go on. Between two calls nothing is kept here but the place: the caller keeps the bytes. A preview has `maxBytes`.
 */
export function newChunkReader(maxBytes = Number.POSITIVE_INFINITY) {
  let state: 'size' | 'content' | 'content-end' | 'trailer' = 'size'
  let left = 0
  let total = 0
  let trailerBytes = 0
  let isWhole = false

  return {
    take(bytes: Buffer): { event: BodyEvent | undefined; rest: Buffer } | undefined {
      if (state === 'content') {
        const part = bytes.subarray(0, left)
        left -= part.length
        if (left === 0) state = 'content-end'
        return { event: { kind: 'content', bytes: part }, rest: bytes.subarray(part.length) }
      }
      if (state === 'content-end') {
        if (bytes.length < 2) return undefined
        if (bytes[0] !== 13 || bytes[1] !== 10) throw new IcapFault(400, 'A chunk is longer than it says.')
        state = 'size'
        return { event: undefined, rest: bytes.subarray(2) }
      }
      const at = bytes.indexOf('\r\n')
      if (at > maxLineBytes || (at === -1 && bytes.length > maxLineBytes)) {
        throw new IcapFault(400, 'A line of the chunked body is too long.')
      }
      if (at === -1) return undefined
      const rest = bytes.subarray(at + 2)
      if (state === 'size') {
        readSize(bytes.toString('latin1', 0, at))
        return { event: undefined, rest }
      }
      trailerBytes += at + 2
      if (trailerBytes > maxTrailerBytes) throw new IcapFault(400, 'The trailer of the body is too long.')
      if (at > 0) return { event: undefined, rest }
      return { event: { kind: 'body-end', isWhole }, rest }
    },
  }

  function readSize(line: string) {
    const [, digits, extensions = ''] = /^([0-9a-f]{1,8})[ \t]*(;.*)?$/i.exec(line) ?? []
    if (digits === undefined) throw new IcapFault(400, 'The size of a chunk cannot be read.')
    left = Number.parseInt(digits, 16)
    total += left
    if (total > maxBytes) throw new IcapFault(400, 'The preview is longer than the Preview header says.')
    state = left === 0 ? 'trailer' : 'content'
    isWhole = left === 0 && /^;[ \t]*ieof[ \t]*(;|$)/i.test(extensions)
  }
}
