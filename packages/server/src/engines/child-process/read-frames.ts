import type { Readable } from 'node:stream'
import { type Frame, frameHeadBytes, frameKinds, maxAnswerBytes, maxDataBytes } from './frames.ts'

/**
 * Reads frames from a child on demand. The socket is paused while no frame is wanted, so that a child which writes
 * faster than the service reads has to wait.
 */
export function readFrames(socket: Readable) {
  let buffered: Buffer[] = []
  let bufferedBytes = 0
  let hasEnded = false
  let wake: (() => void) | undefined
  socket.on('data', (chunk: Buffer) => {
    buffered.push(chunk)
    bufferedBytes += chunk.length
    if (wake === undefined) socket.pause()
    else wake()
  })
  socket.on('close', () => {
    hasEnded = true
    wake?.()
  })

  /** Returns the next bytes, of which enough are buffered. */
  function take(bytes: number): Buffer {
    const all = buffered.length === 1 ? (buffered[0] as Buffer) : Buffer.concat(buffered)
    // A reader may free memory that its payload fills, so no buffered chunk may share that memory, not even at its end.
    buffered = all.length === bytes ? [] : [all.subarray(bytes)]
    bufferedBytes = all.length - bytes
    return all.subarray(0, bytes)
  }

  /** Waits until that many bytes are buffered. False when the socket has ended before. */
  async function fill(bytes: number): Promise<boolean> {
    while (bufferedBytes < bytes) {
      if (hasEnded) return false
      await new Promise<void>((resolve) => {
        wake = resolve
        if (socket.isPaused()) socket.resume()
      })
      wake = undefined
    }
    return true
  }

  /** Undefined when the socket has ended. Throws when the child sends an invalid frame. */
  return async function readFrame(): Promise<Frame | undefined> {
    if (bufferedBytes < frameHeadBytes && !(await fill(frameHeadBytes))) return undefined
    const head = take(frameHeadBytes)
    const kind = head[0] ?? 0
    const bytes = head.readUInt32LE(1)
    if (bytes > (kind === frameKinds.answer ? maxAnswerBytes : maxDataBytes))
      throw new Error(`A frame of ${bytes} bytes`)
    if (bufferedBytes < bytes && !(await fill(bytes))) return undefined
    return { kind, payload: take(bytes) }
  }
}
