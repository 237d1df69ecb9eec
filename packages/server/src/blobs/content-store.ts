import { createHash } from 'node:crypto'
import { mkdir, readdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { buffer } from 'node:stream/consumers'
import { v7 as newUuid } from 'uuid'
import type { Content } from '../domain/content/content.ts'
import { headBytes } from '../domain/content/content.ts'
import type { ContentStore, ContentWriter } from '../domain/ports/content-store.ts'
import { freeBuffer, freeMemory } from '../runtime/free-buffer.ts'
import { findProcessIdentity, isRunning } from '../runtime/process.ts'
import { toStorageProblem } from './disk-space.ts'
import { newContentKey } from './frames.ts'
import { type BlockPool, type MemoryBudget, makeBlockPool, newMemoryContent } from './memory-content.ts'
import { createSealedFile, type FileBounds, type SealedWriter } from './sealed-file.ts'

/** The largest content that stays in memory, unless the writer is given another limit. */
const memoryBytes = 1024 * 1024

/**
 * Content of scans that run in this process, which alone has the keys of its files. Larger content lies in a directory
 * that is named after the process, so that after a crash the sweeper of any process can tell that nobody needs it.
 */
export function openContentStore(deps: { dir: string } & FileBounds): ContentStore & {
  sweep(): Promise<number>
  close(): Promise<void>
} {
  const identity = findProcessIdentity(process.pid) ?? String(process.pid)
  const ownDir = join(deps.dir, identity)
  // One byte more than content ever fills, so that a block is never mistaken for a chunk whose memory may be freed.
  const pool = makeBlockPool({ blockBytes: memoryBytes + 1, maxFree: 16 })
  let created: Promise<unknown> | undefined

  async function createFile() {
    created ??= mkdir(ownDir, { recursive: true, mode: 0o700 })
    await created.catch((error) => {
      // The next upload tries again: the disk may have space by then.
      created = undefined
      throw toStorageProblem(error)
    })
    return createSealedFile(join(ownDir, newUuid()), newContentKey(), deps)
  }

  return {
    newWriter: (options) => makeContentWriter({ memoryBytes, ...options, pool, createFile, memory: deps.memory }),
    /** Removes the content of processes that crashed, and returns their number. */
    async sweep() {
      const owners = await readdir(deps.dir).catch(() => [])
      const endedOwners = owners.filter((owner) => owner !== identity && !isRunning(owner))
      for (const owner of endedOwners) await rm(join(deps.dir, owner), { recursive: true, force: true })
      return endedOwners.length
    },
    close: () => rm(ownDir, { recursive: true, force: true }),
  }
}

type WriterDeps = {
  /** Content up to this size stays in memory. */
  memoryBytes: number
  expectedBytes?: number | undefined
  ownsMemory?: boolean
  pool: BlockPool
  createFile(): Promise<SealedWriter>
  memory?: MemoryBudget | undefined
}

/** Keeps small content in memory, and moves it to an encrypted file when it outgrows the limit or the budget. */
export function makeContentWriter(deps: WriterDeps): ContentWriter<Content | StoredContent> {
  const gatherer = makeGatherer(deps)
  let bytes = 0
  /** Bytes taken from the memory budget. */
  let budgetBytes = 0
  let spool: ReturnType<typeof makeSpool> | undefined
  let finished: Promise<Content | StoredContent> | undefined

  const take = (wanted: number): boolean => {
    if (deps.memory?.take(wanted) === false) return false
    budgetBytes += wanted
    return true
  }
  const release = () => {
    deps.memory?.release(budgetBytes)
    budgetBytes = 0
    gatherer.release()
  }

  return {
    write(chunk) {
      const before = bytes
      bytes += chunk.length
      if (spool !== undefined) return spool.write(chunk)
      if (Math.max(bytes, deps.expectedBytes ?? 0) <= deps.memoryBytes && take(chunk.length)) {
        gatherer.add(chunk)
        return undefined
      }
      const file = makeSpool(deps.createFile)
      spool = file
      if (before === 0) return file.write(chunk)
      // Both writes are queued now: the file is not open yet, and the next chunk must come behind them.
      const moved = Promise.all(gatherer.takePieces().map(file.write)).finally(release)
      const both = Promise.all([moved, file.write(chunk)]).then(() => {})
      // A caller that does not wait for this promise learns of a failure from `finish`.
      both.catch(() => {})
      return both
    },
    finish() {
      finished = spool === undefined ? newMemoryContent(gatherer.join(bytes), release) : spool.finish(bytes)
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

/** Chunks below this size are copied together, because each buffer has a cost of its own. */
const smallChunkBytes = 16 * 1024

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
      block = pool.take(bytes)
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

/** Content in a file. `keep` closes the file and leaves it in place. */
export type StoredContent = Content & { keep(): Promise<void> }

/** Hashes content as it passes, then encrypts and writes it to a file. */
function makeSpool(createFile: () => Promise<SealedWriter>) {
  const sha1 = createHash('sha1')
  const sha256 = createHash('sha256')
  let head: Buffer | undefined
  let headLength = 0
  let file: SealedWriter | undefined
  const opening = createFile().then((opened) => {
    file = opened
    // The head can be read from a local file: a thousand slow uploads would hold 64 MB of heads.
    if (opened.isLocal) freeHead()
  })
  opening.catch(() => {})
  const keepHead = (chunk: Buffer) => {
    if (file?.isLocal === true || headLength === headBytes) return
    // Allocated once: a buffer that grew with each chunk of a slow upload left a megabyte of garbage.
    head ??= Buffer.allocUnsafeSlow(headBytes)
    headLength += chunk.copy(head, headLength)
  }
  const freeHead = () => {
    if (head !== undefined) freeBuffer(head)
    head = undefined
  }
  const pass = (chunk: Buffer) => {
    const written = file?.write(chunk)
    freeBuffer(chunk)
    return written
  }

  return {
    write(chunk: Buffer): Promise<void> | undefined {
      keepHead(chunk)
      sha1.update(chunk)
      sha256.update(chunk)
      if (file !== undefined) return pass(chunk)
      const passed = opening.then(() => pass(chunk))
      // A caller that does not wait for this promise learns of a failure from `finish`.
      passed.catch(() => {})
      return passed
    },
    async finish(bytes: number): Promise<StoredContent> {
      await opening
      const { isLocal, finish } = file as SealedWriter
      const sealed = await finish(bytes)
      const first = isLocal ? await buffer(sealed.read(0, Math.min(headBytes, bytes))) : head?.subarray(0, headLength)
      let removed: Promise<void> | undefined
      return {
        bytes,
        head: first ?? Buffer.alloc(0),
        sha1: sha1.digest('hex'),
        sha256: sha256.digest('hex'),
        whole: undefined,
        read: sealed.read,
        release() {
          removed ??= sealed.remove()
          return removed
        },
        async keep() {
          await sealed.sync()
          removed = sealed.close()
          await removed
        },
      }
    },
    async abort() {
      await opening.catch(() => {})
      const opened = file
      file = undefined
      await opened?.remove()
    },
  }
}
