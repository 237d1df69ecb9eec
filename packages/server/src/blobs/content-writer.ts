import type { Content } from '../domain/content/content.ts'
import type { ContentWriter } from '../domain/ports/content-store.ts'
import { freeBuffer, freeMemory } from '../runtime/free-buffer.ts'
import type { BlockPool } from './block-pool.ts'
import type { ContentMemory } from './content-memory.ts'
import { newMemoryContent } from './memory-content.ts'
import type { SealedWriter } from './sealed-file.ts'
import { makeSpool, type StoredContent } from './spool.ts'

/** Chunks below this are gathered: each has a cost of its own. */
const littleBytes = 16 * 1024

/** Keeps content in memory as long as it is small, and hands it over to an encrypted file when it outgrows that. */
export function makeContentWriter(deps: {
  /** What is not larger than this is never written anywhere. */
  memoryBytes: number
  expectedBytes?: number | undefined
  ownsMemory?: boolean
  pool: BlockPool
  createFile(): Promise<SealedWriter>
  /** Shared with others. What does not fit goes to a file, however small. */
  memory?: ContentMemory | undefined
}): ContentWriter<Content | StoredContent> {
  const free = deps.ownsMemory === true ? freeMemory : freeBuffer
  /** As they came, but little ones are gathered: a slow upload holds no more than what has come of it. */
  let pieces: Buffer[] = []
  let gathering: { into: Buffer; filled: number } | undefined
  /** All of it in one piece, unless that is how it came and it is little. */
  let block: Buffer | undefined
  let bytes = 0
  /** Of the memory that is shared. */
  let taken = 0
  let spool: ReturnType<typeof makeSpool> | undefined
  let finished: Promise<Content | StoredContent> | undefined

  const endGathering = () => {
    if (gathering !== undefined) pieces.push(gathering.into.subarray(0, gathering.filled))
    gathering = undefined
  }
  const keep = (chunk: Buffer) => {
    if (gathering !== undefined && gathering.filled + chunk.length > gathering.into.length) endGathering()
    if (chunk.length >= littleBytes || (pieces.length === 0 && gathering === undefined)) {
      endGathering()
      pieces.push(chunk)
      return
    }
    gathering ??= { into: Buffer.allocUnsafeSlow(littleBytes), filled: 0 }
    gathering.filled += chunk.copy(gathering.into, gathering.filled)
  }
  const takePieces = (): Buffer[] => {
    endGathering()
    const taken = pieces
    pieces = []
    return taken
  }
  const join = (): Buffer => {
    const all = takePieces()
    const [first = Buffer.alloc(0)] = all
    // A single large one is copied as well: its memory can be given back now, and nobody knows when later.
    if (all.length <= 1 && bytes < littleBytes) return first
    block = deps.pool.take(bytes)
    let at = 0
    for (const piece of all) {
      at += piece.copy(block, at)
      free(piece)
    }
    return block.subarray(0, at)
  }
  const take = (wanted: number): boolean => {
    if (deps.memory?.take(wanted) === false) return false
    taken += wanted
    return true
  }
  const release = () => {
    deps.memory?.release(taken)
    taken = 0
    if (block !== undefined) deps.pool.release(block)
    block = undefined
    pieces = []
    gathering = undefined
  }

  return {
    write(chunk) {
      const before = bytes
      bytes += chunk.length
      if (spool !== undefined) return spool.write(chunk)
      if (Math.max(bytes, deps.expectedBytes ?? 0) > deps.memoryBytes || !take(chunk.length)) {
        const into = makeSpool(deps.createFile)
        spool = into
        if (before === 0) return into.write(chunk)
        // One right after the other: the file is not open yet, and what comes next must find its place behind both.
        const moved = Promise.all(takePieces().map(into.write)).finally(release)
        const written = into.write(chunk)
        const both = Promise.all([moved, written]).then(() => {})
        // Whoever does not wait learns of a failure from `finish`.
        both.catch(() => {})
        return both
      }
      keep(chunk)
      return undefined
    },
    finish() {
      finished = spool === undefined ? newMemoryContent(join(), release) : spool.finish(bytes)
      return finished
    },
    async abort() {
      const content = await finished?.catch(() => undefined)
      if (content !== undefined) await content.release()
      else if (spool !== undefined) await spool.abort()
      else release()
    },
  }
}
