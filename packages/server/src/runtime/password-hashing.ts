import type { Argon2Parameters } from 'node:crypto'
import { Worker } from 'node:worker_threads'

type Work = { input: Argon2Parameters; resolve(tag: Buffer): void; reject(error: Error): void }
type Reply = { id: number; tag?: Uint8Array; failure?: string }

/** After this time without a password to hash, the thread ends. */
const idleMs = 60_000

/**
 * Hashes passwords one after the other in a thread of its own. Node's thread pool, which scans use for files and
 * encryption, is not involved. The thread starts with the first password.
 */
export function makePasswordHashing({ maxWaiting = 64 } = {}) {
  /** Work that did not start, in its order. Urgent work has a queue of its own, which is served first. */
  const urgent: Work[] = []
  const ordinary: Work[] = []
  let thread: Worker | undefined
  let running: Work | undefined
  let count = 0
  let idle: NodeJS.Timeout | undefined
  let isClosed = false

  return {
    /** Returns undefined when the queue is full. Urgent work has its own queue of the same length. */
    derive(input: Argon2Parameters, { isUrgent = false } = {}): Promise<Buffer> | undefined {
      const queue = isUrgent ? urgent : ordinary
      if (isClosed) return Promise.reject(newClosedError())
      if (queue.length >= maxWaiting) return undefined
      return new Promise((resolve, reject) => {
        queue.push({ input, resolve, reject })
        startNext()
      })
    },
    countWaiting: () => urgent.length + ordinary.length,
    /** Ends the thread. Rejects the work that runs or waits. */
    async close() {
      isClosed = true
      clearTimeout(idle)
      const unfinished = [running, ...urgent.splice(0), ...ordinary.splice(0)]
      running = undefined
      for (const work of unfinished) work?.reject(newClosedError())
      await endThread()
    },
  }

  function startNext() {
    if (running !== undefined || isClosed) return
    running = urgent.shift() ?? ordinary.shift()
    clearTimeout(idle)
    if (running === undefined) {
      thread?.unref()
      idle = setTimeout(() => void endThread(), idleMs).unref()
      return
    }
    thread ??= openThread()
    thread.ref()
    thread.postMessage({ id: ++count, input: running.input })
  }

  /** Forgets the thread before it ends, so that the next password starts another one. */
  async function endThread() {
    const ending = thread
    thread = undefined
    await ending?.terminate()
  }

  function complete(reply: Reply | Error) {
    const work = running
    running = undefined
    if (reply instanceof Error) work?.reject(reply)
    else if (reply.tag === undefined) work?.reject(new Error(`The password was not hashed: ${reply.failure}`))
    else work?.resolve(Buffer.from(reply.tag))
    startNext()
  }

  function openThread(): Worker {
    const opened = new Worker(new URL('./hash-thread.cjs', import.meta.url), { execArgv: [] })
    opened.on('message', complete)
    opened.on('error', (error) => end(error as Error))
    opened.on('exit', () => end(new Error('The thread that hashes passwords ended')))
    return opened

    function end(error: Error) {
      if (thread !== opened) return
      thread = undefined
      if (running !== undefined) complete(error)
    }
  }
}

const newClosedError = () => new Error('The service is stopping and hashes no more passwords')
