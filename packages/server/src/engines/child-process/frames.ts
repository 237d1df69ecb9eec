import { once } from 'node:events'
import type { Readable, Writable } from 'node:stream'
import type { Content } from '../../domain/content/content.ts'
import { EngineDown } from '../../domain/ports/engines.ts'
import { freeBuffer } from '../../runtime/memory.ts'

/**
 * The protocol between the service and its child processes, over one socket (file descriptor 3 of the child). A frame is
 * one byte of kind, the length of the payload in 32 bits (little-endian), and the payload.
 *
 * The service sends `request` (JSON), then the body as `data` frames, then `end`, or `abandon` when it cannot send the
 * rest. The child sends exactly one `answer` (JSON) to each request. The unpacker sends more frames before it: `read`
 * asks for a range of the container, which the service sends as one `data` frame; `open` (a path), `data` and `end`
 * give a member.
 */
export const frameKinds = { request: 1, data: 2, end: 3, abandon: 4, answer: 5, open: 6, read: 7 } as const

export type FrameKind = keyof typeof frameKinds
/** `answer` is the parsed payload of a frame of that kind. */
export type Frame = { kind: number; payload: Buffer; answer?: unknown }

export const frameHeadBytes = 5
/** Larger lengths are a fault of the sender. Bodies are bounded by the length that their request announces. */
export const maxRequestBytes = 65_536
const maxAnswerBytes = 64 * 1024 * 1024
const maxDataBytes = 4 * 1024 * 1024

export function toFrameHead(kind: FrameKind, payloadBytes: number): Buffer {
  const head = Buffer.allocUnsafe(frameHeadBytes)
  head[0] = frameKinds[kind]
  head.writeUInt32LE(payloadBytes, 1)
  return head
}

/**
 * Reads frames from a child on demand. The socket is paused while no frame is wanted, so that a child which writes
 * faster than the service reads has to wait.
 */
export function readFrames(socket: Readable) {
  let buffered: Buffer[] = []
  let bufferedBytes = 0
  let hasEnded = false
  let wake: (() => void) | undefined
  socket.on('data', (chunk: Buffer) => {
    buffered.push(chunk)
    bufferedBytes += chunk.length
    if (wake === undefined) socket.pause()
    else wake()
  })
  socket.on('close', () => {
    hasEnded = true
    wake?.()
  })

  /** Returns the next bytes, of which enough are buffered. */
  function take(bytes: number): Buffer {
    const all = buffered.length === 1 ? (buffered[0] as Buffer) : Buffer.concat(buffered)
    // A reader may free memory that its payload fills, so no buffered chunk may share that memory, not even at its end.
    buffered = all.length === bytes ? [] : [all.subarray(bytes)]
    bufferedBytes = all.length - bytes
    return all.subarray(0, bytes)
  }

  /** Waits until that many bytes are buffered. False when the socket has ended before. */
  async function fill(bytes: number): Promise<boolean> {
    while (bufferedBytes < bytes) {
      if (hasEnded) return false
      await new Promise<void>((resolve) => {
        wake = resolve
        if (socket.isPaused()) socket.resume()
      })
      wake = undefined
    }
    return true
  }

  /** Undefined when the socket has ended. Throws when the child sends an invalid frame. */
  return async function readFrame(): Promise<Frame | undefined> {
    if (bufferedBytes < frameHeadBytes && !(await fill(frameHeadBytes))) return undefined
    const head = take(frameHeadBytes)
    const kind = head[0] ?? 0
    const bytes = head.readUInt32LE(1)
    if (bytes > (kind === frameKinds.answer ? maxAnswerBytes : maxDataBytes))
      throw new Error(`A frame of ${bytes} bytes`)
    if (bufferedBytes < bytes && !(await fill(bytes))) return undefined
    return { kind, payload: take(bytes) }
  }
}

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
