import { mkdir, readdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import type { ScanKind } from '@assay/contract'
import { v7 as newUuid } from 'uuid'
import type { Content } from '../domain/content/content.ts'
import type { ContentStore, ContentWriter } from '../domain/ports/content-store.ts'
import { type DigestThreads, makeDigestThreads } from '../runtime/digest-threads.ts'
import { freeBuffer, freeMemory } from '../runtime/memory.ts'
import { findProcessIdentity, isRunning } from '../runtime/process.ts'
import { toStorageProblem } from './disk-space.ts'
import { newContentKey } from './frames.ts'
import { makeLargeWriter, smallChunkBytes } from './large-writer.ts'
import {
  type BlockPool,
  type MemoryBudget,
  makeBlockPool,
  makeMemoryBudget,
  newMemoryContent,
  type RecentHeads,
} from './memory-content.ts'
import { createSealedFile, type FileBounds, type SealedWriter, type StoredContent } from './sealed-file.ts'

/**
 * Blocks of memory for content. Smaller content lies in one of them and is hashed when it has arrived; larger content
 * lies in several, and a thread hashes each while the next one arrives.
 */
const blockBytes = 256 * 1024
/** Blocks that are kept for the next content, always and for a few seconds. */
const freeBlocks = { minFree: 64, maxFree: 512 }
const defaultMemoryBytes = 64 * 1024 * 1024

/**
 * Content of scans that run in this process, which alone has the keys of its files. Content that finds no memory lies
 * in a directory that is named after the process, so that after a crash the sweeper of any process can tell that nobody
 * needs it.
 */
export function openContentStore(
  deps: {
    dir: string
    /** The part of `memory` that pictures may take while there is space on the disk. */
    pictureMemory?: MemoryBudget
    threads?: DigestThreads
    recentHeads?: RecentHeads | undefined
  } & FileBounds,
): ContentStore & {
  sweep(): Promise<number>
  close(): Promise<void>
} {
  const identity = findProcessIdentity(process.pid) ?? String(process.pid)
  const ownDir = join(deps.dir, identity)
  const memory = deps.memory ?? makeMemoryBudget({ maxBytes: defaultMemoryBytes })
  const { pictureMemory = memory } = deps
  const threads = deps.threads ?? makeDigestThreads()
  const pool = makeBlockPool({ blockBytes, ...freeBlocks })
  const { recentHeads } = deps
  let created: Promise<unknown> | undefined

  async function createFile() {
    created ??= mkdir(ownDir, { recursive: true, mode: 0o700 })
    await created.catch((error) => {
      // The next upload tries again: the disk may have space by then.
      created = undefined
      throw toStorageProblem(error)
    })
    return createSealedFile(join(ownDir, newUuid()), newContentKey(), { ...deps, memory })
  }

  const findMemory = (kind?: ScanKind) =>
    kind === 'nsfw_image' && deps.disk?.findFault() === undefined ? pictureMemory : memory

  return {
    newWriter(options) {
      const bounds = { pool, memory: findMemory(options?.kind), threads, recentHeads, keepsLarge: true }
      return makeContentWriter({ ...options, ...bounds, createFile })
    },
    /** Removes the content of processes that crashed, and returns their number. */
    async sweep() {
      const owners = await readdir(deps.dir).catch(() => [])
      const endedOwners = owners.filter((owner) => owner !== identity && !isRunning(owner))
      for (const owner of endedOwners) await rm(join(deps.dir, owner), { recursive: true, force: true })
      return endedOwners.length
    },
    async close() {
      if (deps.threads === undefined) await threads.close()
      await rm(ownDir, { recursive: true, force: true })
    },
  }
}

type WriterDeps = {
  /** Blocks for small content: content that fills one is large. */
  pool: BlockPool
  /** Whether large content stays in memory as long as the budget allows. Otherwise all of it goes to a file. */
  keepsLarge: boolean
  memory: MemoryBudget
  threads: DigestThreads
  recentHeads?: RecentHeads | undefined
  expectedBytes?: number | undefined
  ownsMemory?: boolean
  accountId?: string | null
  createFile(): Promise<SealedWriter>
}

/** Keeps content in memory, and moves it to an encrypted file when it outgrows the budget. */
export function makeContentWriter(deps: WriterDeps): ContentWriter<Content | StoredContent> {
  const { pool, memory, accountId, expectedBytes = 0 } = deps
  const gatherer = makeGatherer(deps)
  let bytes = 0
  /** Bytes taken from the memory budget for small content. */
  let budgetBytes = 0
  let large: ReturnType<typeof makeLargeWriter> | undefined
  let finished: Promise<Content | StoredContent> | undefined

  const take = (wanted: number): boolean => {
    if (!memory.take(wanted, accountId)) return false
    budgetBytes += wanted
    return true
  }
  const releaseBudget = () => {
    memory.release(budgetBytes, accountId)
    budgetBytes = 0
  }
  const release = () => {
    releaseBudget()
    gatherer.release()
  }
  const isSmall = (chunk: Buffer) => Math.max(bytes, expectedBytes) <= pool.blockBytes && take(chunk.length)

  function openLarge() {
    const pieces = gatherer.takePieces()
    releaseBudget()
    // Content that will not fit goes to its file from the first byte, and leaves the memory to others.
    const fits = deps.keepsLarge && memory.hasRoom(Math.max(bytes, expectedBytes), accountId)
    large = makeLargeWriter({ ...deps, blocks: fits ? { pool, memory } : undefined })
    for (const piece of pieces) large.write(piece)
    return large
  }

  return {
    write(chunk) {
      bytes += chunk.length
      if (large !== undefined) return large.write(chunk)
      if (!isSmall(chunk)) return openLarge().write(chunk)
      gatherer.add(chunk)
      return undefined
    },
    finish() {
      finished = large === undefined ? newMemoryContent(gatherer.join(bytes), release) : large.finish(bytes)
      return finished
    },
    async abort() {
      const content = await finished?.catch(() => undefined)
      if (content !== undefined) await content.release()
      else if (large !== undefined) await large.abort()
      else release()
    },
  }
}

/** Gathers chunks in memory. A slow upload holds no more memory than the bytes that have arrived. */
function makeGatherer({ pool, ownsMemory }: Pick<WriterDeps, 'pool' | 'ownsMemory'>) {
  const free = ownsMemory === true ? freeMemory : freeBuffer
  let pieces: Buffer[] = []
  let small: { into: Buffer; filled: number } | undefined
  let block: Buffer | undefined

  const endSmall = () => {
    if (small !== undefined) pieces.push(small.into.subarray(0, small.filled))
    small = undefined
  }
  const takePieces = (): Buffer[] => {
    endSmall()
    const takenPieces = pieces
    pieces = []
    return takenPieces
  }
  return {
    takePieces,
    add(chunk: Buffer) {
      if (small !== undefined && small.filled + chunk.length > small.into.length) endSmall()
      if (chunk.length >= smallChunkBytes || (pieces.length === 0 && small === undefined)) {
        endSmall()
        pieces.push(chunk)
        return
      }
      small ??= { into: Buffer.allocUnsafeSlow(smallChunkBytes), filled: 0 }
      small.filled += chunk.copy(small.into, small.filled)
    },
    /** Returns all bytes in one buffer, a block of the pool unless they are a single small chunk. */
    join(bytes: number): Buffer {
      const all = takePieces()
      const [first = Buffer.alloc(0)] = all
      // A single large chunk is copied too, because its memory can be freed now and perhaps much later otherwise.
      if (all.length <= 1 && bytes < smallChunkBytes) return first
      block = pool.take()
      let at = 0
      for (const piece of all) {
        at += piece.copy(block, at)
        free(piece)
      }
      return block.subarray(0, at)
    },
    release() {
      if (block !== undefined) pool.release(block)
      block = undefined
      pieces = []
      small = undefined
    },
  }
}
