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

/** A frame that took longer to come is put away at once: a slow client would hold the next ones for minutes. */
const slowFrameMs = 250
/** What is being filled grows to a whole frame by doubling. */
const leastBytes = 16 * 1024

/** Seals content as it comes. What is sealed goes to `put` in order, one call at a time, the header first. */
export function makeFrameWriter(deps: Deps) {
  const { memory } = deps
  let clear: Buffer | undefined
  let begunAtMs = performance.now()
  let filled = 0
  let frames = 0
  let sealed: Buffer[] = [deps.header]
  /** Of the shared memory, for frames that are being collected. */
  let held = 0
  /** Not to be collected any longer. */
  let isDue = false
  /** One call is under way, the next is being collected. A failure stays, and the next call reports it. */
  let writing: Promise<unknown> = Promise.resolve()

  const seal = (isLast: boolean) => {
    sealed.push(...sealFrame(deps.frameKey, frames, isLast, clear?.subarray(0, filled) ?? nothing))
    frames++
    filled = 0
    const nowMs = performance.now()
    const isSlow = nowMs - begunAtMs > slowFrameMs
    begunAtMs = nowMs
    if (isSlow || isLast) letGo()
    if (isSlow) isDue = true
    else if (memory !== undefined) {
      if (memory.take(frameBytes)) held += frameBytes
      else isDue = true
    }
  }
  const letGo = () => {
    if (clear !== undefined) freeBuffer(clear)
    clear = undefined
  }
  const makeRoom = (wanted: number): Buffer => {
    let bytes = clear?.length ?? leastBytes
    while (bytes < Math.min(filled + wanted, frameBytes)) bytes *= 2
    if (clear?.length === bytes) return clear
    const larger = Buffer.allocUnsafeSlow(bytes)
    clear?.copy(larger, 0, 0, filled)
    letGo()
    clear = larger
    return larger
  }
  const flush = () => {
    const batch = sealed
    const lent = held
    sealed = []
    held = 0
    isDue = false
    writing = writing
      .then(() => deps.put(batch))
      .then(() => batch.forEach(freeBuffer))
      .finally(() => memory?.release(lent))
    writing.catch(() => {})
  }

  return {
    /** A promise when the storage has to catch up. */
    write(chunk: Buffer): Promise<void> | undefined {
      const before = writing
      for (let at = 0; at < chunk.length; ) {
        // A full frame is sealed only when more follows: the last one carries the mark of the end.
        if (filled === frameBytes) seal(false)
        const taken = chunk.copy(makeRoom(chunk.length - at), filled, at)
        filled += taken
        at += taken
      }
      if (sealed.length < 2 * framesPerCall && !isDue) return undefined
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
    async complete() {
      await writing.catch(() => {})
      letGo()
      memory?.release(held)
      held = 0
    },
  }
}

const nothing = Buffer.alloc(0)
