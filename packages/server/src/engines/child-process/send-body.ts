import { once } from 'node:events'
import type { Writable } from 'node:stream'
import type { Content } from '../../domain/content/content.ts'
import { EngineDown } from '../../domain/ports/engines.ts'
import { freeBuffer } from '../../runtime/memory.ts'
import { toFrameHead } from './frames.ts'

/** The content in the form in which a child receives it: one buffer when it is in memory, else its chunks. */
export const toBody = (content: Content): Buffer | AsyncIterable<Buffer> =>
  content.whole?.length === content.bytes ? content.whole : checkLength(content)

/** Fails before the child would: a child that receives more bytes than announced exits. */
async function* checkLength(content: Content): AsyncGenerator<Buffer> {
  let bytes = 0
  for await (const chunk of content.read()) {
    bytes += chunk.length
    if (bytes > content.bytes) throw new EngineDown(`The content has more than its ${content.bytes} bytes`)
    yield chunk
  }
}

/** Sends a body in chunks, as fast as the child takes them. Returns the error when the body cannot be sent. */
export async function sendBody(
  socket: Writable,
  body: Buffer | AsyncIterable<Buffer>,
  limits: { ms: number; signals: AbortSignal[]; ownsChunks: boolean },
): Promise<{ error: unknown } | undefined> {
  if (Buffer.isBuffer(body)) {
    for (const signal of limits.signals) if (signal.aborted) return { error: signal.reason }
    writeChunk(socket, body)
    return undefined
  }
  const timeout = new AbortController()
  const timer = setTimeout(
    () => timeout.abort(new EngineDown(`The content did not arrive within ${limits.ms} ms`)),
    limits.ms,
  )
  try {
    const signal = AbortSignal.any([timeout.signal, ...limits.signals])
    await sendChunks(socket, body, { signal, ownsChunks: limits.ownsChunks })
    return undefined
  } catch (error) {
    return { error }
  } finally {
    clearTimeout(timer)
  }
}

async function sendChunks(
  socket: Writable,
  body: AsyncIterable<Buffer>,
  { signal, ownsChunks }: { signal: AbortSignal; ownsChunks: boolean },
) {
  const stopped = Promise.withResolvers<never>()
  stopped.promise.catch(() => {})
  const stop = () => stopped.reject(signal.reason)
  signal.throwIfAborted()
  signal.addEventListener('abort', stop, { once: true })
  // Sends the request now. Only a body in memory goes out in the same write as its request.
  socket.uncork()
  const chunks = body[Symbol.asyncIterator]()
  let isDone = false
  try {
    for (;;) {
      const next = await Promise.race([chunks.next(), stopped.promise])
      if (next.done === true) {
        isDone = true
        return
      }
      socket.cork()
      const chunk = next.value
      const hasRoom = writeChunk(socket, chunk, ownsChunks ? () => freeBuffer(chunk) : undefined)
      socket.uncork()
      if (!hasRoom) await Promise.race([once(socket, 'drain', { signal }), stopped.promise])
    }
  } finally {
    signal.removeEventListener('abort', stop)
    // The end of the iterator is not awaited: a read that hangs would hang here too.
    if (!isDone) chunks.return?.()?.catch(() => {})
  }
}

function writeChunk(socket: Writable, chunk: Buffer, onSent?: () => void): boolean {
  if (chunk.length === 0) return true
  socket.write(toFrameHead('data', chunk.length))
  return socket.write(chunk, onSent)
}
