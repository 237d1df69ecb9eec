import { hash, subtle } from 'node:crypto'
import type { Content } from '../domain/content/content.ts'
import { headBytes } from '../domain/content/content.ts'
import { freeBuffer } from '../runtime/free-buffer.ts'

/**
 * Limits the content in memory, over all uploads and downloads together. Content that finds no memory goes to an
 * encrypted file, however small it is: a thousand slow clients must not cost a thousand times the memory of one.
 */
export function makeMemoryBudget({ maxBytes }: { maxBytes: number }) {
  let takenBytes = 0
  return {
    /** Returns false, and takes nothing, when the budget has less left. */
    take(bytes: number): boolean {
      if (takenBytes + bytes > maxBytes) return false
      takenBytes += bytes
      return true
    },
    release(bytes: number) {
      takenBytes -= bytes
    },
    countBytes: () => takenBytes,
  }
}

export type MemoryBudget = ReturnType<typeof makeMemoryBudget>

/**
 * Reuses blocks of memory for small content. With new memory for each upload, the garbage collector took most of the
 * service's time with content of 1 MB.
 */
export function makeBlockPool({ blockBytes, maxFree }: { blockBytes: number; maxFree: number }) {
  const free: Buffer[] = []
  return {
    /** Returns memory for more than `bytes` bytes; content larger than a block gets memory of its own. */
    take: (bytes: number): Buffer =>
      bytes < blockBytes ? (free.pop() ?? Buffer.allocUnsafeSlow(blockBytes)) : Buffer.allocUnsafeSlow(bytes + 1),
    /** The caller must not use the block afterwards. */
    release(block: Buffer) {
      if (block.length === blockBytes && free.length < maxFree) free.push(block)
      // Freed at once: after a thousand slow uploads the garbage collector would leave this memory for minutes.
      else freeBuffer(block)
    },
  }
}

export type BlockPool = ReturnType<typeof makeBlockPool>

/** From this size on, SHA-256 is computed on another thread: 1 MB would block all other requests for almost 1 ms. */
const asyncHashBytes = 128 * 1024
/**
 * Above this size SHA-1 is computed at once, on another thread. Below it is computed when it is read, which is seldom.
 */
const lazyHashBytes = 1024 * 1024

/** Content that is never written to a disk. `onRelease` is called when its memory may be used again. */
export async function newMemoryContent(bytes: Buffer, onRelease: () => void): Promise<Content> {
  const [sha256, sha1] = await Promise.all([
    bytes.length < asyncHashBytes ? hash('sha256', bytes) : digest('SHA-256', bytes),
    bytes.length > lazyHashBytes ? digest('SHA-1', bytes) : undefined,
  ])
  let whole: Buffer | undefined = bytes
  const getWhole = () => {
    if (whole === undefined) throw new Error('The content was released')
    return whole
  }
  return {
    bytes: bytes.length,
    head: bytes.subarray(0, headBytes),
    get sha1() {
      return sha1 ?? hash('sha1', getWhole())
    },
    sha256,
    get whole() {
      return whole
    },
    async *read(start = 0, end) {
      if (getWhole().length > start) yield getWhole().subarray(start, end)
    },
    async release() {
      if (whole !== undefined) onRelease()
      whole = undefined
    },
  }
}

async function digest(name: string, bytes: Buffer): Promise<string> {
  return Buffer.from(await subtle.digest(name, bytes as Uint8Array<ArrayBuffer>)).toString('hex')
}
