import { once } from 'node:events'
import type { Writable } from 'node:stream'
import { EngineDown } from '../../domain/ports/engines.ts'
import { toLength } from './wire.ts'

/** Sends a body in chunks, as fast as the other side takes them. Returns why it could not, if it could not. */
export async function sendBody(
  pipe: Writable,
  body: Buffer | AsyncIterable<Buffer>,
  limits: { ms: number; signals: AbortSignal[] },
): Promise<{ error: unknown } | undefined> {
  if (Buffer.isBuffer(body)) {
    for (const signal of limits.signals) if (signal.aborted) return { error: signal.reason }
    writeChunk(pipe, body)
    return undefined
  }
  const late = new AbortController()
  const timer = setTimeout(
    () => late.abort(new EngineDown(`The content did not arrive within ${limits.ms} ms`)),
    limits.ms,
  )
  try {
    await sendChunks(pipe, body, AbortSignal.any([late.signal, ...limits.signals]))
    return undefined
  } catch (error) {
    return { error }
  } finally {
    clearTimeout(timer)
  }
}

async function sendChunks(pipe: Writable, body: AsyncIterable<Buffer>, signal: AbortSignal) {
  const stopped = Promise.withResolvers<never>()
  stopped.promise.catch(() => {})
  const stop = () => stopped.reject(signal.reason)
  signal.throwIfAborted()
  signal.addEventListener('abort', stop, { once: true })
  // The header is on its way; only small content waits to go out with it.
  pipe.uncork()
  const chunks = body[Symbol.asyncIterator]()
  let isDone = false
  try {
    for (;;) {
      const next = await Promise.race([chunks.next(), stopped.promise])
      if (next.done === true) {
        isDone = true
        return
      }
      pipe.cork()
      const hasRoom = writeChunk(pipe, next.value)
      pipe.uncork()
      if (!hasRoom) await Promise.race([once(pipe, 'drain', { signal }), stopped.promise])
    }
  } finally {
    signal.removeEventListener('abort', stop)
    // Not waited for: a read that hangs would hang here once more.
    if (!isDone) chunks.return?.()?.catch(() => {})
  }
}

/** A chunk without bytes would be the end of the body. */
function writeChunk(pipe: Writable, chunk: Buffer): boolean {
  if (chunk.length === 0) return true
  pipe.write(toLength(chunk.length))
  return pipe.write(chunk)
}
