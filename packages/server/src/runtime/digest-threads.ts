import { availableParallelism } from 'node:os'
import { Worker } from 'node:worker_threads'

/** After this time without content to hash, a thread ends. */
const idleMs = 60_000
/** Each thread takes some megabytes, and hashes faster than an engine scans. */
const maxThreads = Math.min(4, availableParallelism())

/**
 * Bytes of one content, in order. `isLast` asks for the digests; a message without pieces forgets the content. The
 * first message of a content decides whether its SHA-1 is computed.
 */
type DigestRequest = {
  id: number
  pieces?: Uint8Array<ArrayBuffer>[]
  isLast?: boolean
  wantsSha1?: boolean
}
/** `sha1` is undefined if it was not wanted. */
export type Digests = { sha1: string | undefined; sha256: string }
type DigestReply = { pieces: Uint8Array<ArrayBuffer>[]; digests: Digests | undefined }

type Pending = PromiseWithResolvers<DigestReply>
type Thread = {
  worker: Worker
  /** Contents that are hashed by this thread. */
  contents: number
  /** Requests without a reply, in their order: the thread replies in the same order. */
  pending: Pending[]
  failure: Error | undefined
  idle: NodeJS.Timeout | undefined
}

/** The SHA-1 and SHA-256 of one content, computed in a thread. */
export type ContentDigest = {
  /**
   * Hashes the next pieces. The first call decides whether the SHA-1 is computed. The memory that the pieces are part
   * of moves to the thread and back without a copy: use the returned buffers afterwards. Rejects when the thread has
   * failed; the memory is lost then.
   */
  update(
    pieces: Buffer[],
    options: { isLast: boolean; wantsSha1: boolean },
  ): Promise<{ pieces: Buffer[]; digests: Digests | undefined }>
  /** Ends the digest before its last piece. Does nothing after it. */
  drop(): void
}

/**
 * Hashes large content beside the event loop, while it arrives. Node's own thread pool can only hash content that has
 * arrived whole, and copies it. Threads start when content comes and none is free, and end after a minute without any.
 */
export function makeDigestThreads() {
  let threads: Thread[] = []
  let lastId = 0
  let isClosed = false

  return {
    open(): ContentDigest {
      const thread = chooseThread()
      const id = ++lastId
      let isOpen = true
      retain(thread)
      const end = () => {
        if (isOpen) release(thread)
        isOpen = false
      }
      return {
        async update(pieces, options) {
          try {
            const reply = await ask(thread, { id, pieces: pieces as Uint8Array<ArrayBuffer>[], ...options })
            if (options.isLast) end()
            return { pieces: reply.pieces.map(toBuffer), digests: reply.digests }
          } catch (error) {
            end()
            throw error
          }
        },
        drop() {
          if (isOpen && thread.failure === undefined) thread.worker.postMessage({ id } satisfies DigestRequest)
          end()
        },
      }
    },
    countThreads: () => threads.length,
    async close() {
      isClosed = true
      await Promise.all(threads.map((thread) => end(thread, newClosedError())))
    },
  }

  function chooseThread(): Thread {
    if (isClosed) throw newClosedError()
    const [best] = threads.toSorted((a, b) => a.contents - b.contents)
    if (best !== undefined && (best.contents === 0 || threads.length >= maxThreads)) return best
    const opened = openThread()
    threads.push(opened)
    return opened
  }

  function openThread(): Thread {
    const worker = new Worker(new URL('./digest-thread.cjs', import.meta.url), { execArgv: [] })
    const thread: Thread = { worker, contents: 0, pending: [], failure: undefined, idle: undefined }
    worker.on('message', (reply: DigestReply) => thread.pending.shift()?.resolve(reply))
    worker.on('error', (error) => void end(thread, error as Error))
    worker.on('exit', () => void end(thread, new Error('A thread that hashes content ended')))
    return thread
  }

  /** Rejects everything that the thread was asked, and forgets it, so that the next content gets another one. */
  async function end(thread: Thread, failure: Error) {
    if (thread.failure !== undefined) return
    thread.failure = failure
    threads = threads.filter((other) => other !== thread)
    clearTimeout(thread.idle)
    for (const { reject } of thread.pending.splice(0)) reject(failure)
    await thread.worker.terminate()
  }

  function retain(thread: Thread) {
    thread.contents++
    clearTimeout(thread.idle)
    // A program that waits for nothing but a digest must not end before it.
    thread.worker.ref()
  }

  function release(thread: Thread) {
    thread.contents--
    if (thread.contents > 0 || thread.failure !== undefined) return
    thread.worker.unref()
    thread.idle = setTimeout(() => void end(thread, new Error('The thread was idle')), idleMs).unref()
  }
}

export type DigestThreads = ReturnType<typeof makeDigestThreads>

function ask(thread: Thread, request: DigestRequest): Promise<DigestReply> {
  if (thread.failure !== undefined) return Promise.reject(thread.failure)
  const pending = Promise.withResolvers<DigestReply>()
  thread.pending.push(pending)
  thread.worker.postMessage(
    request,
    (request.pieces ?? []).map(({ buffer }) => buffer),
  )
  return pending.promise
}

const toBuffer = ({ buffer, byteOffset, byteLength }: Uint8Array<ArrayBuffer>) =>
  Buffer.from(buffer, byteOffset, byteLength)

const newClosedError = () => new Error('The service is stopping and hashes no more content')
