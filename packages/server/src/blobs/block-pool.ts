import { freeBuffer } from '../runtime/free-buffer.ts'

/**
 * Memory for content that is small enough to stay there, used again and again. Taken anew for each upload, it made the
 * garbage collector run so often that it took most of the service's time with content of 1 MB.
 */
export function makeBlockPool({ blockBytes, maxFree }: { blockBytes: number; maxFree: number }) {
  const free: Buffer[] = []
  return {
    /** For so many bytes. More than a block holds get memory of their own, with a byte to spare as well. */
    take: (bytes: number): Buffer =>
      bytes < blockBytes ? (free.pop() ?? Buffer.allocUnsafeSlow(blockBytes)) : Buffer.allocUnsafeSlow(bytes + 1),
    /** The block must not be used afterwards. */
    release(block: Buffer) {
      if (block.length === blockBytes && free.length < maxFree) free.push(block)
      // At once: after a thousand slow uploads the garbage collector would be in no hurry.
      else freeBuffer(block)
    },
  }
}

export type BlockPool = ReturnType<typeof makeBlockPool>
