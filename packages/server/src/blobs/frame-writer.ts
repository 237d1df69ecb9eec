import { freeBuffer } from '../runtime/free-buffer.ts'
import type { ContentMemory } from './content-memory.ts'
import { type FrameKey, frameBytes, sealFrame } from './frames.ts'

/** Frames that are put away in one call. */
const framesPerCall = 8

type Deps = {
  frameKey: FrameKey
  header: Buffer
  put(batch: Buffer[]): Promise<unknown>
  /** Frames that find no room there are put away at once. */
  memory?: ContentMemory | undefined
}

/** Seals content as it comes. What is sealed goes to `put` in order, one call at a time, the header first. */
export function makeFrameWriter(deps: Deps) {
  const { memory } = deps
  const clear = Buffer.allocUnsafe(frameBytes)
  let filled = 0
  let frames = 0
  let sealed: Buffer[] = [deps.header]
  /** Of the shared memory, for frames that are being collected. */
  let held = 0
  let isFull = false
  /** One call is under way, the next is being collected. A failure stays, and the next call reports it. */
  let writing: Promise<unknown> = Promise.resolve()

  const seal = (isLast: boolean) => {
    sealed.push(...sealFrame(deps.frameKey, frames, isLast, clear.subarray(0, filled)))
    frames++
    filled = 0
    if (memory === undefined) return
    if (memory.take(frameBytes)) held += frameBytes
    else isFull = true
  }
  const flush = () => {
    const batch = sealed
    const lent = held
    sealed = []
    held = 0
    isFull = false
    writing = writing
      .then(() => deps.put(batch))
      .then(() => batch.forEach(freeBuffer))
      .finally(() => memory?.giveBack(lent))
    writing.catch(() => {})
  }

  return {
    /** A promise when the storage has to catch up. */
    write(chunk: Buffer): Promise<void> | undefined {
      const before = writing
      for (let at = 0; at < chunk.length; ) {
        // A full frame is sealed only when more follows: the last one carries the mark of the end.
        if (filled === frameBytes) seal(false)
        const taken = chunk.copy(clear, filled, at)
        filled += taken
        at += taken
      }
      if (sealed.length < 2 * framesPerCall && !isFull) return undefined
      flush()
      return before.then(() => {})
    },
    /** Until all of it is put away. */
    async finish() {
      seal(true)
      flush()
      await writing
    },
    /** Until nothing is under way, also when a call failed. */
    async settle() {
      await writing.catch(() => {})
      memory?.giveBack(held)
      held = 0
    },
  }
}
