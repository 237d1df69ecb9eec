import { mayHoldContent } from '../domain/content/container.ts'
import { type Content, type Description, headBytes } from '../domain/content/content.ts'
import { mayHoldEncoded } from '../domain/content/encoded-text.ts'
import { malformed } from '../domain/problem.ts'
import { LinkClosed } from '../runtime/link.ts'

/** The description of content that an HTTP process holds, for the main process. */
export type ContentNotice = {
  id: number
  bytes: number
  isInMemory: boolean
  description: Description
  mayHold: boolean
  mayHoldEncoded: boolean
}

/** Content up to this size is sent together with its notice. */
const sentBytes = 64 * 1024
/** Content in memory up to this size is fetched whole when its head is needed, and treated as small. */
const wholeBytes = 1024 * 1024
/** Bytes of larger content that one call fetches. */
const pieceBytes = 512 * 1024

/** In an HTTP process: the content that calls to the main process are about. */
export function makeSharedContents() {
  const contents = new Map<number, Content>()
  let lastId = 0

  function get(id: number): Content {
    const content = contents.get(id)
    if (content === undefined) throw new Error('The content was released')
    return content
  }

  return {
    /** Runs `use` with the notice of the content, which can be read meanwhile. Small content is passed as `body`. */
    async share<T>(
      content: Content,
      description: Description,
      use: (notice: ContentNotice, body: Buffer | undefined) => Promise<T>,
    ): Promise<T> {
      const id = ++lastId
      const { bytes, isInMemory, whole } = content
      contents.set(id, content)
      try {
        const mayHold = mayHoldContent(content)
        const notice = { id, bytes, isInMemory, description, mayHold, mayHoldEncoded: await mayHoldEncoded(content) }
        return await use(notice, bytes <= sentBytes ? whole : undefined)
      } finally {
        contents.delete(id)
      }
    },
    get,
    async read({ id, start, end }: { id: number; start: number; end: number }): Promise<Buffer> {
      const content = get(id)
      const pieces: Buffer[] = []
      for await (const piece of content.read(start, end)) pieces.push(piece)
      // A copy also of a single piece: its memory may be reused before the link has written it.
      return Buffer.concat(pieces)
    },
  }
}

/** Calls of the main process to the HTTP process that holds the content. */
type Owner = {
  read(range: { id: number; start: number; end: number }): Promise<Buffer>
  sendToClamd(content: { id: number; address: object }, signal: AbortSignal): Promise<string>
}

/** In the main process: content that an HTTP process holds, and of which `sent` came with the notice. */
export const newRemoteContent = (notice: ContentNotice, sent: Buffer | undefined, owner: Owner): Content =>
  new RemoteContent(notice, sent, owner)

/** A class for the reason that `MemoryContent` is one. */
class RemoteContent implements Content {
  readonly bytes: number
  readonly description: Description
  readonly sha1: string
  readonly sha256: string
  readonly isInMemory: boolean
  mayHold?: boolean
  readonly mayHoldEncoded: boolean
  readonly sendFromOwner?: (address: object, signal: AbortSignal) => Promise<string>
  readonly #id: number
  readonly #owner: Owner
  readonly #isFetchedWhole: boolean
  #whole: Buffer | undefined
  #head: Buffer | undefined

  constructor(notice: ContentNotice, sent: Buffer | undefined, owner: Owner) {
    const { id, bytes, isInMemory, description } = notice
    this.bytes = bytes
    this.description = description
    this.sha1 = description.hashes.hash_sha1
    this.sha256 = description.hashes.hash_sha256
    this.mayHold = notice.mayHold
    this.mayHoldEncoded = notice.mayHoldEncoded
    this.#id = id
    this.#owner = owner
    this.#isFetchedWhole = isInMemory && bytes <= wholeBytes
    this.#whole = sent
    this.#head = sent?.subarray(0, headBytes)
    // Pieces of larger content belong to their reader.
    this.isInMemory = this.#isFetchedWhole || sent !== undefined
    if (sent === undefined) {
      this.sendFromOwner = (address, signal) => owner.sendToClamd({ id, address }, signal).catch(throwIfEnded)
    }
  }

  get whole(): Buffer | undefined {
    return this.#whole
  }

  get head(): Buffer {
    if (this.#head === undefined) throw new Error('The content is not loaded')
    return this.#head
  }

  async load() {
    if (this.#head !== undefined) return
    if (this.#isFetchedWhole) this.#whole = await this.#fetchRange(0, this.bytes)
    this.#head = this.#whole?.subarray(0, headBytes) ?? (await this.#fetchRange(0, Math.min(this.bytes, headBytes)))
  }

  async *read(start = 0, end = this.bytes) {
    const stop = Math.min(end, this.bytes)
    if (this.#whole !== undefined) {
      if (stop > start) yield this.#whole.subarray(start, stop)
      return
    }
    const fetchFrom = (from: number) =>
      from < stop ? this.#fetchRange(from, Math.min(stop, from + pieceBytes)) : undefined
    for (let at = start, next = fetchFrom(at); next !== undefined; ) {
      const piece = await next
      at += piece.length
      next = fetchFrom(at)
      // A reader that stops early leaves this one unread.
      next?.catch(() => {})
      yield piece
    }
  }

  async release() {}

  async #fetchRange(start: number, end: number): Promise<Buffer> {
    const piece = await this.#owner.read({ id: this.#id, start, end }).catch(throwIfEnded)
    if (piece.length === end - start) return piece
    throw new Error(`The content has ${piece.length} bytes where ${end - start} should be`)
  }
}

/** With its process, a client has lost its connection too: nothing is recorded or charged. */
function throwIfEnded(error: unknown): never {
  if (error instanceof LinkClosed) throw malformed('The process that received the content has ended.')
  throw error
}
