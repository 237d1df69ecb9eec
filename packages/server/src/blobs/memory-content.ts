import { hash, subtle } from 'node:crypto'
import { type Content, headBytes } from '../domain/content/content.ts'
import { newCache } from '../domain/new-cache.ts'
import { raiseLimitWithBuffers } from '../runtime/memory.ts'

/** The part of the budget that one account may take: content of others must find memory too. */
const accountPart = 3 / 4

/**
 * Limits the content in memory, over all uploads and downloads together. Content that finds no memory goes to an
 * encrypted file, however small it is: a thousand slow clients must not cost a thousand times the memory of one. What a
 * budget within another one takes counts in both.
 */
export function makeMemoryBudget({ maxBytes, within }: { maxBytes: number; within?: MemoryBudget }): MemoryBudget {
  const takenByAccount = new Map<string, number>()
  let takenBytes = 0

  const hasRoom = (bytes: number, accountId?: string | null): boolean =>
    takenBytes + bytes <= maxBytes &&
    (accountId == null || (takenByAccount.get(accountId) ?? 0) + bytes <= maxBytes * accountPart) &&
    within?.hasRoom(bytes, accountId) !== false
  const add = (bytes: number, accountId?: string | null) => {
    takenBytes += bytes
    if (accountId == null) return
    const ofAccount = (takenByAccount.get(accountId) ?? 0) + bytes
    if (ofAccount === 0) takenByAccount.delete(accountId)
    else takenByAccount.set(accountId, ofAccount)
  }

  return {
    hasRoom,
    take(bytes, accountId) {
      if (!hasRoom(bytes, accountId)) return false
      within?.take(bytes, accountId)
      add(bytes, accountId)
      return true
    },
    release(bytes, accountId) {
      within?.release(bytes, accountId)
      add(-bytes, accountId)
    },
    countBytes: () => takenBytes,
    countAccounts: () => takenByAccount.size,
  }
}

export type MemoryBudget = {
  /** Whether `take` would succeed now. */
  hasRoom(bytes: number, accountId?: string | null): boolean
  /** Returns false, and takes nothing, when the budget or the share of the account has less left. */
  take(bytes: number, accountId?: string | null): boolean
  release(bytes: number, accountId?: string | null): void
  countBytes(): number
  countAccounts(): number
}

/**
 * How long unused blocks stay in a pool beyond those that it always keeps. With new memory, an upload of 100 MB takes 820
 * instead of 430 ms of processor time, so the next one should find that of the last.
 */
const keptMs = 30_000

/**
 * Reuses blocks of memory for content. The first use of new memory costs ten times as much as copying into it, and with
 * new memory for each upload the garbage collector took most of the service's time with content of 1 MB.
 */
export function makeBlockPool({
  blockBytes,
  minFree,
  maxFree,
}: {
  blockBytes: number
  minFree: number
  maxFree: number
}) {
  const free: Buffer[] = []
  let isTrimming = false

  const trim = () => {
    isTrimming = false
    for (const block of free.splice(minFree)) freeBlock(block)
  }

  return {
    blockBytes,
    take: (): Buffer => free.pop() ?? newBlock(blockBytes),
    /** Takes back the memory that the buffer is a part of. The caller must not use it afterwards. */
    release({ buffer }: Buffer) {
      const block = Buffer.from(buffer as ArrayBuffer)
      if (free.length >= maxFree) freeBlock(block)
      else free.push(block)
      if (free.length <= minFree || isTrimming) return
      isTrimming = true
      setTimeout(trim, keptMs).unref()
    },
    countFree: () => free.length,
  }
}

export type BlockPool = ReturnType<typeof makeBlockPool>

/** V8 maps the memory of a resizable buffer by itself: freeing returns it to the system at once, at any size. */
function newBlock(bytes: number): Buffer {
  raiseLimitWithBuffers()
  return Buffer.from(new ArrayBuffer(bytes, { maxByteLength: bytes }))
}

const freeBlock = ({ buffer }: Buffer) => (buffer as ArrayBuffer).resize(0)

/** Whether the buffer is a part of a block of a pool. */
export const isBlock = ({ buffer }: Buffer): boolean => (buffer as ArrayBuffer).resizable

/** From this size on, SHA-256 is computed on another thread, as other requests would wait for it. */
const asyncHashBytes = 128 * 1024

/** Content that is never written to a disk. `onRelease` is called when its memory may be used again. */
export async function newMemoryContent(bytes: Buffer, onRelease: () => void): Promise<Content> {
  const sha256 =
    bytes.length < asyncHashBytes
      ? hash('sha256', bytes)
      : Buffer.from(await subtle.digest('SHA-256', bytes as Uint8Array<ArrayBuffer>)).toString('hex')
  return new MemoryContent(bytes, sha256, onRelease)
}

/**
 * Getters are those of a class: an object literal with getters has a hidden class of its own, which keeps everything
 * that the getters refer to until the next full garbage collection.
 */
class MemoryContent implements Content {
  readonly bytes: number
  readonly head: Buffer
  readonly sha256: string
  readonly isInMemory = true
  readonly release: () => Promise<void>
  mayHold?: boolean
  #whole: Buffer | undefined
  #sha1: string | undefined

  constructor(bytes: Buffer, sha256: string, onRelease: () => void) {
    this.bytes = bytes.length
    this.head = bytes.length <= headBytes ? bytes : bytes.subarray(0, headBytes)
    this.sha256 = sha256
    this.#whole = bytes
    this.release = async () => {
      if (this.#whole !== undefined) onRelease()
      this.#whole = undefined
    }
  }

  get whole(): Buffer | undefined {
    return this.#whole
  }

  /** Computed when it is first read, which is seldom for content that was seen before. */
  get sha1(): string {
    this.#sha1 ??= hash('sha1', this.#getWhole())
    return this.#sha1
  }

  async *read(start = 0, end?: number) {
    const whole = this.#getWhole()
    if (whole.length > start) yield whole.subarray(start, end)
  }

  #getWhole(): Buffer {
    if (this.#whole === undefined) throw new Error('The content was released')
    return this.#whole
  }
}

/** Content in blocks of `blockBytes`, of which the last one may be shorter. */
export function newBlockContent(
  all: Buffer[],
  { blockBytes, bytes, sha256 }: { blockBytes: number; bytes: number; sha256: string },
  onRelease: (blocks: Buffer[]) => void,
): Omit<Content, 'sha1'> {
  let blocks: Buffer[] | undefined = all
  const getBlocks = () => {
    if (blocks === undefined) throw new Error('The content was released')
    return blocks
  }
  const content: Omit<Content, 'sha1' | 'whole'> & { whole: Buffer | undefined } = {
    sha256,
    bytes,
    head: all[0]?.subarray(0, headBytes) ?? Buffer.alloc(0),
    isInMemory: true,
    whole: all.length === 1 ? all[0] : undefined,
    async *read(start = 0, end = bytes) {
      const stop = Math.min(end, bytes)
      for (let at = start; at < stop; ) {
        const first = at % blockBytes
        const block = getBlocks()[(at - first) / blockBytes] as Buffer
        const part = first === 0 && stop - at >= block.length ? block : block.subarray(first, first + stop - at)
        at += part.length
        yield part
      }
      getBlocks()
    },
    async release() {
      if (blocks !== undefined) onRelease(blocks)
      blocks = undefined
      content.whole = undefined
    },
  }
  return content
}

/** Bytes at the beginning of content that are compared. */
const comparedBytes = 4096

type Arriving = { head: Buffer; expectedBytes: number; accountId: string | null | undefined }
type Hashes = { sha1: string; sha256: string }

/**
 * Recognizes content that has probably come before, by its account, its expected size and its first bytes. If its
 * SHA-256 is that of the earlier content, its SHA-1 is too, and need not be computed again. `entries` is the number of
 * beginnings that are remembered.
 */
export function makeRecentHeads({ entries }: { entries: number }) {
  /** The hashes of the content that began like this; undefined if several contents did, of which none is expected. */
  const heads = entries === 0 ? undefined : newCache<{ hashes: Hashes | undefined }>(entries)

  return ({ head, expectedBytes, accountId }: Arriving) => {
    const key = `${accountId ?? ''} ${expectedBytes} ${hash('sha1', head.subarray(0, comparedBytes))}`
    return {
      expected: heads?.get(key)?.hashes,
      /** Call it when the content has arrived whole. */
      note({ sha1, sha256 }: Hashes) {
        const noted = heads?.get(key)
        const isFirst = noted === undefined
        heads?.set(key, { hashes: isFirst || noted.hashes?.sha256 === sha256 ? { sha1, sha256 } : undefined })
      },
    }
  }
}

export type RecentHeads = ReturnType<typeof makeRecentHeads>
