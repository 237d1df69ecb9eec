import { createHash } from 'node:crypto'
import { setImmediate as waitForTurn } from 'node:timers/promises'
import type { Content } from '../domain/content/content.ts'
import type { Digests, DigestThreads } from '../runtime/digest-threads.ts'
import { freeBuffer, freeMemory, isWholeMemory } from '../runtime/memory.ts'
import { type BlockPool, isBlock, type MemoryBudget, newBlockContent, type RecentHeads } from './memory-content.ts'
import { makeSpool, type SealedWriter, type Spool, type StoredContent } from './sealed-file.ts'

/** Chunks below this size are copied together, because each buffer has a cost of its own. */
export const smallChunkBytes = 16 * 1024
/**
 * Bytes that may wait for their hash: a faster client waits, and leaves the threads to others. Pieces for a file are
 * not part of the budget, so that fewer of them may wait.
 */
const maxWaitingBytes = { memory: 1024 * 1024, file: 128 * 1024 }

export type LargeDeps = {
  threads: DigestThreads
  ownsMemory?: boolean | undefined
  accountId?: string | null | undefined
  expectedBytes?: number | undefined
  /** Recognizes repeats in memory, whose SHA-1 is known. Without it, the SHA-1 is always computed. */
  recentHeads?: RecentHeads | undefined
  /** Undefined for content that always goes to a file. */
  blocks: { pool: BlockPool; memory: MemoryBudget } | undefined
  createFile(): Promise<SealedWriter>
}

/**
 * Receives content that is hashed in a thread while it arrives. It stays in blocks of memory until the budget refuses
 * another one; then all of it moves to an encrypted file. Pieces pass in one order: filled, hashed, kept or written.
 */
export function makeLargeWriter(deps: LargeDeps) {
  const digest = deps.threads.open()
  const sink = makeSink(deps)
  /** Pieces that are filled, in the order of the content. */
  let filled: Buffer[] = []
  /** Bytes of pieces that are filled and not yet kept. */
  let waitingBytes = 0
  let isEnding = false
  let isAborted = false
  let digests: Digests | undefined
  let failure: { error: unknown } | undefined
  let running: Promise<void> | undefined
  let room: PromiseWithResolvers<void> | undefined
  let guess: ReturnType<RecentHeads> | undefined

  const hasWork = () => !isAborted && (filled.length > 0 || (isEnding && digests === undefined))
  /** Sends all pieces that are filled to the thread, one message at a time: each costs as much as hashing 16 KB. */
  async function run() {
    while (hasWork()) {
      const batch = filled
      filled = []
      if (sink.isInMemory()) guess ??= guessRepeat(deps, batch[0])
      const hashed = await digest.update(batch, { isLast: isEnding, wantsSha1: guess?.expected === undefined })
      digests = hashed.digests
      for (const piece of hashed.pieces) {
        waitingBytes -= piece.length
        if (isAborted) sink.recycle(piece)
        else await sink.keep(piece)
      }
      if (waitingBytes <= sink.countMaxWaiting() / 2) giveRoom()
    }
  }
  const giveRoom = () => {
    room?.resolve()
    room = undefined
  }
  const start = () => {
    if (running !== undefined || failure !== undefined) return
    running = run()
      .catch((error) => {
        failure = { error }
        giveRoom()
      })
      .finally(() => {
        running = undefined
        if (hasWork()) start()
      })
  }
  const push = (piece: Buffer) => {
    filled.push(piece)
    waitingBytes += piece.length
    start()
  }
  async function waitForRoom() {
    if (failure === undefined) {
      room ??= Promise.withResolvers<void>()
      await room.promise
    }
    if (failure !== undefined) throw failure.error
  }
  /** Resolves when everything that is filled is kept. */
  const waitUntilIdle = async () => {
    while (running !== undefined) await running
    if (failure !== undefined) throw failure.error
  }

  return {
    write(chunk: Buffer): Promise<void> | undefined {
      sink.add(chunk, push)
      if (failure === undefined && waitingBytes <= sink.countMaxWaiting()) return undefined
      const hasRoom = waitForRoom()
      // A caller that fails for another reason never waits for it; an unhandled rejection would end the process.
      hasRoom.catch(() => {})
      return hasRoom
    },
    async finish(bytes: number): Promise<Content | StoredContent> {
      sink.end(push)
      isEnding = true
      start()
      await waitUntilIdle()
      const { sha1, sha256 } = digests as Digests
      const content = await addSha1(await sink.finish(bytes, sha256), sha1, guess?.expected)
      guess?.note(content)
      return content
    },
    async abort() {
      isAborted = true
      giveRoom()
      await waitUntilIdle().catch(() => {})
      digest.drop()
      for (const piece of filled.splice(0)) sink.recycle(piece)
      await sink.abort()
    },
  }
}

type WithoutSha1 = Omit<Content, 'sha1'> | Omit<StoredContent, 'sha1'>

/** Adds the SHA-1 that the thread computed, or that of the expected content, or computes it where another one came. */
async function addSha1(
  content: WithoutSha1,
  computed: string | undefined,
  expected: ReturnType<RecentHeads>['expected'],
): Promise<Content | StoredContent> {
  const known = computed ?? (expected?.sha256 === content.sha256 ? expected.sha1 : undefined)
  try {
    return Object.assign(content, { sha1: known ?? (await computeSha1(content)) })
  } catch (error) {
    await content.release()
    throw error
  }
}

/** Hashes piece by piece, so that other requests have their turn in between. */
async function computeSha1({ read }: WithoutSha1): Promise<string> {
  const sha1 = createHash('sha1')
  for await (const piece of read()) {
    sha1.update(piece)
    await waitForTurn()
  }
  return sha1.digest('hex')
}

const guessRepeat = ({ recentHeads, expectedBytes = 0, accountId }: LargeDeps, head: Buffer = Buffer.alloc(0)) =>
  recentHeads?.({ head, expectedBytes, accountId })

/** Fills pieces with chunks, and keeps them when they are hashed: blocks in memory, or smaller pieces for a file. */
function makeSink(deps: LargeDeps) {
  const blocks = makeHeldBlocks(deps)
  const filler = makeFiller()
  /** Blocks that are hashed, in order. */
  let kept: Buffer[] = []
  let file: Spool | undefined = deps.blocks === undefined ? makeSpool(deps.createFile) : undefined
  /** Memory that holds parts of the form beside the content, and is freed at the end. */
  let shared: Buffer[] = []

  const free = (chunk: Buffer) => {
    if (deps.ownsMemory === true && !isWholeMemory(chunk)) shared.push(chunk)
    else freeBuffer(chunk)
  }
  const moveToFile = async (spool: Spool) => {
    await spool.opening
    for (let piece = kept.shift(); piece !== undefined; piece = kept.shift()) {
      const written = spool.write(piece)
      blocks.recycle(piece)
      await written
    }
  }
  const openBlock = (): Buffer | undefined => {
    if (file !== undefined) return undefined
    const block = blocks.open()
    // Blocks that are filled already move to the file when their turn comes in `keep`.
    if (block === undefined) file = makeSpool(deps.createFile)
    return block
  }

  return {
    recycle: blocks.recycle,
    isInMemory: () => file === undefined,
    countMaxWaiting: () => (file === undefined ? maxWaitingBytes.memory : maxWaitingBytes.file),
    add(chunk: Buffer, push: Push) {
      const isLarge = chunk.length >= smallChunkBytes
      if (file !== undefined && isLarge) filler.end(push)
      let at = filler.fill(chunk, 0, push, openBlock)
      if (at === 0 && isLarge) {
        if (isWholeMemory(chunk)) return push(chunk)
        push(copyOf(chunk))
        at = chunk.length
      }
      filler.fill(chunk, at, push, () => Buffer.allocUnsafeSlow(smallChunkBytes))
      free(chunk)
    },
    end: filler.end,
    /** Keeps a hashed piece. Call it for one at a time, in the order of the content. */
    async keep(hashed: Buffer) {
      kept.push(hashed)
      if (file !== undefined) await moveToFile(file)
    },
    async finish(bytes: number, sha256: string): Promise<WithoutSha1> {
      for (const memory of shared.splice(0)) freeMemory(memory)
      if (file !== undefined) {
        await moveToFile(file)
        return file.finish(bytes, sha256)
      }
      const all = kept
      kept = []
      const { blockBytes } = blocks
      return newBlockContent(all, { blockBytes, bytes, sha256 }, (released) => released.forEach(blocks.recycle))
    },
    async abort() {
      for (const piece of kept.splice(0)) blocks.recycle(piece)
      filler.end(blocks.recycle)
      shared = []
      blocks.releaseLost()
      await file?.abort()
    },
  }
}

type Push = (piece: Buffer) => void

/** Copies chunks into pieces, and passes on each piece that is full. */
function makeFiller() {
  let piece: { into: Buffer; length: number } | undefined

  const end = (push: Push) => {
    if (piece !== undefined) push(piece.into.subarray(0, piece.length))
    piece = undefined
  }
  return {
    end,
    /** Copies the chunk from `at` on, until it ends or `open` returns no memory, and returns where it stopped. */
    fill(chunk: Buffer, at: number, push: Push, open: () => Buffer | undefined): number {
      let done = at
      while (done < chunk.length) {
        if (piece === undefined) {
          const into = open()
          if (into === undefined) break
          piece = { into, length: 0 }
        }
        const copied = chunk.copy(piece.into, piece.length, done)
        piece.length += copied
        done += copied
        if (piece.length === piece.into.length) end(push)
      }
      return done
    },
  }
}

/** Blocks of the pool that content holds, and their part of the budget. */
function makeHeldBlocks({ blocks, accountId }: Pick<LargeDeps, 'blocks' | 'accountId'>) {
  const blockBytes = blocks?.pool.blockBytes ?? 0
  let heldBytes = 0

  return {
    blockBytes,
    /** Returns undefined when the budget has no room. */
    open(): Buffer | undefined {
      if (blocks?.memory.take(blockBytes, accountId) !== true) return undefined
      heldBytes += blockBytes
      return blocks.pool.take()
    },
    /** Frees a piece, whether it is a block or not. */
    recycle(piece: Buffer) {
      if (!isBlock(piece)) return freeBuffer(piece)
      blocks?.pool.release(piece)
      blocks?.memory.release(blockBytes, accountId)
      heldBytes -= blockBytes
    },
    /** Returns the budget of blocks that a failed thread did not return. */
    releaseLost() {
      blocks?.memory.release(heldBytes, accountId)
      heldBytes = 0
    },
  }
}

const copyOf = (chunk: Buffer): Buffer => {
  const copy = Buffer.allocUnsafeSlow(chunk.length)
  chunk.copy(copy)
  return copy
}
