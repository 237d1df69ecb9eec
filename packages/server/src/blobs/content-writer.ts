import type { Content } from '../domain/content/content.ts'
import type { ContentWriter } from '../domain/ports/content-store.ts'
import { freeBuffer } from '../runtime/free-buffer.ts'
import type { BlockPool } from './block-pool.ts'
import type { ContentMemory } from './content-memory.ts'
import { newMemoryContent } from './memory-content.ts'
import type { SealedWriter } from './sealed-file.ts'
import { makeSpool, type StoredContent } from './spool.ts'

/** Keeps content in memory as long as it is small, and hands it over to an encrypted file when it outgrows that. */
export function makeContentWriter(deps: {
  /** What is not larger than this is never written anywhere. */
  memoryBytes: number
  pool: BlockPool
  createFile(): Promise<SealedWriter>
  /** Shared with others. What does not fit goes to a file, however small. */
  memory?: ContentMemory | undefined
}): ContentWriter<Content | StoredContent> {
  /** A single chunk stays as it came; from the second on they are gathered in a block. */
  let only: Buffer | undefined
  let block: Buffer | undefined
  let bytes = 0
  /** Of the memory that is shared. */
  let taken = 0
  let spool: ReturnType<typeof makeSpool> | undefined
  let finished: Promise<Content | StoredContent> | undefined

  const gather = (chunk: Buffer, at: number) => {
    block ??= deps.pool.take()
    chunk.copy(block, at)
    freeBuffer(chunk)
  }
  const take = (wanted: number): boolean => {
    if (deps.memory?.take(wanted) === false) return false
    taken += wanted
    return true
  }
  const giveBack = () => {
    deps.memory?.giveBack(taken)
    taken = 0
    if (block !== undefined) deps.pool.giveBack(block)
    block = undefined
  }
  const getKept = (length: number) => only ?? block?.subarray(0, length) ?? Buffer.alloc(0)

  return {
    write(chunk) {
      const before = bytes
      bytes += chunk.length
      if (spool !== undefined) return spool.write(chunk)
      if (bytes > deps.memoryBytes || !take(chunk.length)) {
        const into = makeSpool(deps.createFile)
        spool = into
        if (before === 0) return into.write(chunk)
        // One right after the other: the file is not open yet, and what comes next must find its place behind both.
        const moved = Promise.resolve(into.write(getKept(before))).finally(giveBack)
        const written = into.write(chunk)
        const both = Promise.all([moved, written]).then(() => {})
        // Whoever does not wait learns of a failure from `finish`.
        both.catch(() => {})
        return both
      }
      if (before === 0) only = chunk
      else {
        if (only !== undefined) gather(only, 0)
        only = undefined
        gather(chunk, before)
      }
      return undefined
    },
    finish() {
      finished = spool === undefined ? newMemoryContent(getKept(bytes), giveBack) : spool.finish(bytes)
      return finished
    },
    async abort() {
      const content = await finished?.catch(() => undefined)
      if (content !== undefined) await content.release()
      else if (spool !== undefined) await spool.abort()
      else giveBack()
    },
  }
}
