import { countFrames, toPlace } from '../frame-reader.ts'
import { sealedFrameBytes } from '../frames.ts'
import type { S3Calls } from './s3-calls.ts'

/** A megabyte for each call: a store takes some milliseconds for any. */
export const framesPerCall = 16

type Deps = { calls: S3Calls; key: string; bytes: number; signal: AbortSignal }

/**
 * Sealed frames of an object, in calls of their own, so that one that breaks costs little. While one is used, the next is
 * under way: two buffers take turns. `bytes` is where the reading ends.
 */
export function makeReadAhead({ calls, key, bytes, signal }: Deps) {
  const cancelled = new AbortController()
  const either = AbortSignal.any([signal, cancelled.signal])
  const frames = countFrames(bytes)
  const buffers: [Buffer | undefined, Buffer | undefined] = [undefined, undefined]
  let turn: 0 | 1 = 0
  let next: { first: number; sealed: Promise<Buffer> } | undefined

  function begin(first: number) {
    const count = Math.min(framesPerCall, frames - first)
    turn = turn === 0 ? 1 : 0
    buffers[turn] ??= Buffer.allocUnsafeSlow(Math.min(framesPerCall, frames) * sealedFrameBytes)
    const into = buffers[turn]?.subarray(0, count * sealedFrameBytes) as Buffer
    const sealed = calls.get(key, toPlace(first), into, either).then((filled) => into.subarray(0, filled))
    // Nobody may come for it.
    sealed.catch(() => {})
    return { first, sealed }
  }

  return {
    async fetch(first: number): Promise<Buffer> {
      const { sealed } = next?.first === first ? next : begin(first)
      const following = first + framesPerCall
      const ready = await sealed
      next = following < frames ? begin(following) : undefined
      return ready
    },
    cancel: () => cancelled.abort(),
  }
}
