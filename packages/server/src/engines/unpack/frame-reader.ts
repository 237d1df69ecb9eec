import type { Readable } from 'node:stream'
import { frameHeadBytes, maxFrameBytes } from './frames.ts'

export type Frame = { kind: number; payload: Buffer }

/**
 * One frame after the other, and nothing is taken from the pipe before it is asked for: who does not ask, makes the
 * writer wait. Undefined when the pipe ends or what it brings is no frame.
 */
export function readFrames(stream: Readable) {
  const chunks = stream[Symbol.asyncIterator]() as AsyncIterator<Buffer, undefined>
  let rest: Buffer = Buffer.alloc(0)

  async function take(bytes: number): Promise<Buffer | undefined> {
    if (rest.length < bytes) {
      const pieces = [rest]
      for (let have = rest.length; have < bytes; ) {
        const { value, done } = await chunks.next()
        if (done === true || value === undefined) return undefined
        pieces.push(value)
        have += value.length
      }
      rest = Buffer.concat(pieces)
    }
    const taken = rest.subarray(0, bytes)
    // Whoever gets all of the memory may give it back: nothing of ours may point there then, not even at its end.
    rest = rest.length === bytes ? Buffer.alloc(0) : rest.subarray(bytes)
    return taken
  }

  return {
    async next(): Promise<Frame | undefined> {
      try {
        const head = await take(frameHeadBytes)
        if (head === undefined) return undefined
        const length = head.readUInt32LE(1)
        if (length > maxFrameBytes) return undefined
        const payload = await take(length)
        return payload && { kind: head[0] ?? 0, payload }
      } catch {
        return undefined
      }
    },
  }
}
