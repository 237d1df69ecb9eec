import type { Readable } from 'node:stream'
import { type Frame, frameHeadBytes, frameKinds, maxAnswerBytes, maxDataBytes } from './frames.ts'

/**
 * Reads frames from a child on demand. The socket is paused while nobody asks, so that a child which writes faster than
 * the service reads has to wait.
 */
export function readFrames(socket: Readable) {
  let held: Buffer[] = []
  let heldBytes = 0
  let hasEnded = false
  let wake: (() => void) | undefined
  socket.on('data', (chunk: Buffer) => {
    held.push(chunk)
    heldBytes += chunk.length
    if (wake === undefined) socket.pause()
    else wake()
  })
  socket.on('close', () => {
    hasEnded = true
    wake?.()
  })

  /** Returns the next bytes, of which enough are held. */
  function take(bytes: number): Buffer {
    const all = held.length === 1 ? (held[0] as Buffer) : Buffer.concat(held)
    // A reader may free memory that its payload fills, so nothing held may point there, not even at its end.
    held = all.length === bytes ? [] : [all.subarray(bytes)]
    heldBytes = all.length - bytes
    return all.subarray(0, bytes)
  }

  /** False when the socket has ended before that many bytes came. */
  async function hold(bytes: number): Promise<boolean> {
    while (heldBytes < bytes) {
      if (hasEnded) return false
      await new Promise<void>((resolve) => {
        wake = resolve
        if (socket.isPaused()) socket.resume()
      })
      wake = undefined
    }
    return true
  }

  /** Undefined when the socket has ended. Throws when a child sends what is not a frame. */
  return async function readFrame(): Promise<Frame | undefined> {
    if (heldBytes < frameHeadBytes && !(await hold(frameHeadBytes))) return undefined
    const head = take(frameHeadBytes)
    const kind = head[0] ?? 0
    const bytes = head.readUInt32LE(1)
    if (bytes > (kind === frameKinds.answer ? maxAnswerBytes : maxDataBytes))
      throw new Error(`A frame of ${bytes} bytes`)
    if (heldBytes < bytes && !(await hold(bytes))) return undefined
    return { kind, payload: take(bytes) }
  }
}
