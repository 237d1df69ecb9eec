import type { Readable } from 'node:stream'
import { type Frame, frameHeadBytes, frameKinds, maxAnswerBytes, maxDataBytes } from './frames.ts'

/**
 * Reads frames from a child on demand. Bytes that nobody asks for stay in the socket, so that a child which writes faster
 * than the service reads has to wait.
 */
export function readFrames(socket: Readable) {
  let rest: Buffer = Buffer.alloc(0)
  let wake: (() => void) | undefined
  const onEvent = () => {
    if (wake !== undefined) wake()
    // Without a reader, the end of an empty socket is noticed only by this read: an idle child may have died.
    else if (socket.readableLength === 0) socket.read()
  }
  for (const event of ['readable', 'end', 'error', 'close']) socket.on(event, onEvent)

  /** Undefined when the socket has ended. */
  async function readChunk(): Promise<Buffer | undefined> {
    for (;;) {
      const chunk: Buffer | null = socket.read()
      if (chunk !== null) return chunk
      if (socket.readableEnded || socket.destroyed) return undefined
      await new Promise<void>((resolve) => {
        wake = resolve
      })
      wake = undefined
    }
  }

  async function take(bytes: number): Promise<Buffer | undefined> {
    if (rest.length < bytes) {
      const pieces = rest.length === 0 ? [] : [rest]
      for (let have = rest.length; have < bytes; ) {
        const chunk = await readChunk()
        if (chunk === undefined) return undefined
        pieces.push(chunk)
        have += chunk.length
      }
      rest = pieces.length === 1 ? (pieces[0] as Buffer) : Buffer.concat(pieces)
    }
    const taken = rest.subarray(0, bytes)
    // A reader may free memory that its payload fills, so `rest` must not point there, not even at its end.
    rest = rest.length === bytes ? Buffer.alloc(0) : rest.subarray(bytes)
    return taken
  }

  /** Undefined when the socket has ended. Throws when a child sends what is not a frame. */
  return async function readFrame(): Promise<Frame | undefined> {
    const head = await take(frameHeadBytes)
    if (head === undefined) return undefined
    const kind = head[0] ?? 0
    const bytes = head.readUInt32LE(1)
    if (bytes > (kind === frameKinds.answer ? maxAnswerBytes : maxDataBytes))
      throw new Error(`A frame of ${bytes} bytes`)
    const payload = await take(bytes)
    return payload && { kind, payload }
  }
}
