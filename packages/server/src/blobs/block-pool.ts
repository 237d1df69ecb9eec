import { freeBuffer } from '../runtime/free-buffer.ts'

/** As in the whole ones, a byte stays unused. */
const smallBytes = [16 * 1024 + 1, 64 * 1024 + 1]

/**
 * Memory for content that is small enough to stay there, used again and again. Taken anew for each upload, it made the
 * garbage collector run so often that it took most of the service's time with content of 1 MB.
 */
export function makeBlockPool({ blockBytes, maxFree }: { blockBytes: number; maxFree: number }) {
  const free: Buffer[] = []
  return {
    /** At least that much: a thousand slow uploads with a little each do not need a whole one each. */
    take(bytes: number): Buffer {
      const small = smallBytes.find((size) => bytes < size && size < blockBytes)
      return small === undefined ? (free.pop() ?? Buffer.allocUnsafeSlow(blockBytes)) : Buffer.allocUnsafeSlow(small)
    },
    /** The block must not be used afterwards. */
    giveBack(block: Buffer) {
      if (block.length === blockBytes && free.length < maxFree) free.push(block)
      // At once: after a thousand slow uploads the garbage collector would be in no hurry.
      else freeBuffer(block)
    },
  }
}

export type BlockPool = ReturnType<typeof makeBlockPool>
