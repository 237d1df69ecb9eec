import type { Content } from '../domain/content/content.ts'
import type { Digests } from '../runtime/digest-thread.ts'
import type { DigestThreads } from '../runtime/digest-threads.ts'
import { freeBuffer, freeMemory, isWholeMemory } from '../runtime/free-buffer.ts'
import { type BlockPool, isBlock, type MemoryBudget, newBlockContent } from './memory-content.ts'
import type { SealedWriter } from './sealed-file.ts'
import { makeSpool, type Spool, type StoredContent } from './spool.ts'

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

  const hasWork = () => !isAborted && (filled.length > 0 || (isEnding && digests === undefined))
  /** Sends all pieces that are filled to the thread, one message at a time: each costs as much as hashing 16 KB. */
  async function run() {
    while (hasWork()) {
      const batch = filled
      filled = []
      const hashed = await digest.update(batch, isEnding)
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
  /** Resolves when everything that is filled is kept. */
  const waitUntilIdle = async () => {
    while (running !== undefined) await running
    if (failure !== undefined) throw failure.error
  }

  return {
    write(chunk: Buffer): Promise<void> | undefined {
      sink.add(chunk, push)
      if (failure !== undefined) return Promise.reject(failure.error)
      if (waitingBytes <= sink.countMaxWaiting()) return undefined
      room ??= Promise.withResolvers<void>()
      return room.promise.then(() => {
        if (failure !== undefined) throw failure.error
      })
    },
    async finish(bytes: number): Promise<Content | StoredContent> {
      sink.end(push)
      isEnding = true
      start()
      await waitUntilIdle()
      return sink.finish(bytes, digests as Digests)
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

/** Fills pieces with chunks, and keeps them when they are hashed: blocks in memory, or smaller pieces for a file. */
function makeSink(deps: LargeDeps) {
  const { blocks, accountId } = deps
  const blockBytes = blocks?.pool.blockBytes ?? 0
  /** Blocks that are hashed, in order. */
  let kept: Buffer[] = []
  /** The piece that is being filled. */
  let piece: { into: Buffer; length: number } | undefined
  let heldBytes = 0
  let file: Spool | undefined
  /** Memory that holds parts of the form beside the content, and is freed at the end. */
  let shared: Buffer[] = []
  if (blocks === undefined) file = makeSpool(deps.createFile)

  const openBlock = (): boolean => {
    if (blocks?.memory.take(blockBytes, accountId) !== true) return false
    heldBytes += blockBytes
    piece = { into: blocks.pool.take(), length: 0 }
    return true
  }
  const recycle = (done: Buffer) => {
    if (!isBlock(done)) return freeBuffer(done)
    blocks?.pool.release(done)
    blocks?.memory.release(blockBytes, accountId)
    heldBytes -= blockBytes
  }
  const endPiece = (push: (piece: Buffer) => void) => {
    if (piece === undefined) return
    const { into, length } = piece
    piece = undefined
    if (length === 0) recycle(into)
    else push(length === into.length ? into : into.subarray(0, length))
  }
  const fill = (chunk: Buffer, at: number): number => {
    if (piece === undefined) return 0
    const copied = chunk.copy(piece.into, piece.length, at)
    piece.length += copied
    return copied
  }
  const isFull = () => piece !== undefined && piece.length === piece.into.length
  const put = async (hashed: Buffer) => {
    const written = (file as Spool).write(hashed)
    recycle(hashed)
    await written
  }

  /** A chunk that is part of a larger memory is kept until the end, when nothing else needs that memory. */
  const free = (chunk: Buffer) => {
    if (deps.ownsMemory === true && !isWholeMemory(chunk)) shared.push(chunk)
    else freeBuffer(chunk)
  }

  return {
    recycle,
    countMaxWaiting: () => (file === undefined ? maxWaitingBytes.memory : maxWaitingBytes.file),
    add(chunk: Buffer, push: (piece: Buffer) => void) {
      let at = 0
      while (file === undefined && at < chunk.length) {
        if (isFull()) endPiece(push)
        if (piece === undefined && !openBlock()) {
          // The blocks so far follow the file when their turn comes in `keep`.
          file = makeSpool(deps.createFile)
          break
        }
        at += fill(chunk, at)
      }
      if (at === 0 && chunk.length >= smallChunkBytes) {
        endPiece(push)
        if (isWholeMemory(chunk)) return push(chunk)
        push(copyOf(chunk))
        return free(chunk)
      }
      while (at < chunk.length) {
        if (isFull()) endPiece(push)
        piece ??= { into: Buffer.allocUnsafeSlow(smallChunkBytes), length: 0 }
        at += fill(chunk, at)
      }
      free(chunk)
    },
    end: endPiece,
    /** Keeps a hashed piece. Call it for one at a time, in the order of the content. */
    async keep(hashed: Buffer) {
      kept.push(hashed)
      if (file === undefined) return
      await file.opening
      while (kept[0] !== undefined) await put(kept.shift() as Buffer)
    },
    async finish(bytes: number, digests: Digests): Promise<Content | StoredContent> {
      for (const memory of shared.splice(0)) freeMemory(memory)
      if (file !== undefined) {
        await file.opening
        while (kept[0] !== undefined) await put(kept.shift() as Buffer)
        return file.finish(bytes, digests)
      }
      const all = kept
      kept = []
      return newBlockContent(all, { blockBytes, bytes, digests }, (released) => released.forEach(recycle))
    },
    async abort() {
      for (const done of kept.splice(0)) recycle(done)
      if (piece !== undefined) recycle(piece.into)
      piece = undefined
      shared = []
      // Blocks that a failed thread did not return are gone; their share of the budget is not.
      blocks?.memory.release(heldBytes, accountId)
      heldBytes = 0
      await file?.abort()
    },
  }
}

const copyOf = (chunk: Buffer): Buffer => {
  const copy = Buffer.allocUnsafeSlow(chunk.length)
  chunk.copy(copy)
  return copy
}
