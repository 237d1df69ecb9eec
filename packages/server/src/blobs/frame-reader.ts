import { type FrameKey, frameBytes, openFrame, sealedFrameBytes } from './frames.ts'
import { objectHeaderBytes } from './object-key.ts'

/** Where sealed frames come from. */
export type FrameSource = {
  frameKey: FrameKey
  /** Of the clear content. */
  bytes: number
  framesPerCall: number
  /** The sealed frames from `first` on; may be fewer when the object was cut off. Valid until the next call. */
  fetch(first: number, count: number): Promise<Buffer>
}

/** Where a frame lies in its object. */
export const toPlace = (index: number): number => objectHeaderBytes + index * sealedFrameBytes

export const countFrames = (bytes: number): number => Math.max(1, Math.ceil(bytes / frameBytes))

/** Frame by frame, each one authenticated; the first and the last may be parts of one. */
export async function* readFrames(source: FrameSource, start = 0, end = source.bytes): AsyncGenerator<Buffer> {
  const stop = Math.min(end, source.bytes)
  const lastFrame = countFrames(source.bytes) - 1
  for (let at = start; at < stop; ) {
    const first = Math.floor(at / frameBytes)
    const count = Math.min(source.framesPerCall, Math.ceil(stop / frameBytes) - first)
    const sealed = await source.fetch(first, count)
    for (let index = first; index < first + count; index++) {
      const place = (index - first) * sealedFrameBytes
      const frame = sealed.subarray(place, place + sealedFrameBytes)
      const clear = openFrame(source.frameKey, index, index === lastFrame, frame)
      const from = at - index * frameBytes
      const part =
        from === 0 && stop >= (index + 1) * frameBytes ? clear : clear.subarray(from, stop - index * frameBytes)
      at += part.length
      yield part
    }
  }
}
