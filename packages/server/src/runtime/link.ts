import type { Duplex } from 'node:stream'

/** A value that JSON can hold, and bytes beside it. */
export type Message = { value?: unknown; body?: Buffer | undefined }

type CallContext = {
  body: Buffer | undefined
  /** Aborted when the other process no longer wants the answer, and when it has ended. */
  readonly signal: AbortSignal
}

type Handler = (value: never, context: CallContext) => Message | undefined | Promise<Message | undefined>

type LinkOptions = {
  /** Answers the calls of the other process, by name. */
  handlers: Record<string, Handler>
  /** Converts a thrown error to a value that JSON can hold, and back in the other process. */
  toWire(error: unknown): unknown
  fromWire(value: never): Error
  /** Makes the reason with which the signal of a call is aborted. */
  newAbortReason(): Error
  /** The number of the first call. */
  firstId?: number
}

/** The other process has ended, or closed the link. */
export class LinkClosed extends Error {}

const kinds = { call: 1, answer: 2, failure: 3, cancel: 4, note: 5 } as const
type Kind = (typeof kinds)[keyof typeof kinds]

/** A frame begins with the length of the rest in 32 bits, its kind in 8, the number of its call, the length of JSON. */
const headBytes = 13
/** The highest number of a call; notes have 0. */
const maxId = 0xffffffff
/** Frames up to this size are copied into one buffer, because one plain write costs less than a gathered one. */
const copiedBytes = 64 * 1024

/**
 * Calls functions of another process of the service, and serves its calls, any number at a time over one socket. All
 * frames of a turn of the event loop are written together.
 */
export function openLink(socket: Duplex, { handlers, toWire, fromWire, newAbortReason, firstId = 1 }: LinkOptions) {
  const output = makeOutput(socket)
  const pending = new Map<number, PromiseWithResolvers<Required<Pick<Message, 'value'>> & Message>>()
  const running = new Map<number, ServedCall>()
  const { promise: closed, resolve: resolveClosed } = Promise.withResolvers<void>()
  let lastId = firstId - 1
  let isClosed = false

  /** Numbers start again after the last one that a frame can hold. A call that waits for long keeps its own. */
  const nextId = () => {
    do lastId = (lastId % maxId) + 1
    while (pending.has(lastId))
    return lastId
  }

  const takePending = (id: number) => {
    const call = pending.get(id)
    pending.delete(id)
    return call
  }

  function receive(kind: number, id: number, value: unknown, body: Buffer | undefined) {
    if (kind === kinds.call) void serve(id, value as [string, never], body)
    else if (kind === kinds.note) void serve(0, value as [string, never], body)
    else if (kind === kinds.cancel) running.get(id)?.abort(newAbortReason())
    else if (kind === kinds.answer) takePending(id)?.resolve({ value, body })
    else takePending(id)?.reject(fromWire(value as never))
  }

  async function serve(id: number, [name, value]: [string, never], body: Buffer | undefined) {
    const call = new ServedCall(body)
    if (id !== 0) running.set(id, call)
    try {
      const handler = handlers[name]
      if (handler === undefined) throw new Error(`There is no call ${name}`)
      const answer = await handler(value, call)
      if (id !== 0) output.send(kinds.answer, id, answer?.value ?? null, answer?.body)
    } catch (error) {
      if (id !== 0) output.send(kinds.failure, id, toWire(error))
    } finally {
      running.delete(id)
    }
  }

  socket.on('data', makeFrameReader(receive))
  socket.on('error', () => {})
  socket.once('close', () => {
    isClosed = true
    for (const { reject } of pending.values()) reject(new LinkClosed('The other process has ended'))
    for (const call of running.values()) call.abort(newAbortReason())
    pending.clear()
    resolveClosed()
  })

  return {
    /** Calls a function of the other process. An aborted signal is passed on; the call still waits for the answer. */
    call(name: string, { value, body }: Message = {}, signal?: AbortSignal) {
      const answer = Promise.withResolvers<Required<Pick<Message, 'value'>> & Message>()
      if (isClosed) {
        answer.reject(new LinkClosed('The other process has ended'))
        return answer.promise
      }
      const id = nextId()
      pending.set(id, answer)
      output.send(kinds.call, id, [name, value], body)
      if (signal === undefined) return answer.promise
      const cancel = () => output.send(kinds.cancel, id, null)
      if (signal.aborted) cancel()
      signal.addEventListener('abort', cancel, { once: true })
      return answer.promise.finally(() => signal.removeEventListener('abort', cancel))
    },
    /** Calls a function of the other process whose answer does not matter. */
    notify(name: string, value: unknown = null) {
      output.send(kinds.note, 0, [name, value])
    },
    /** Resolves when the other process has ended. */
    closed,
    close: () => socket.destroy(),
  }
}

export type Link = ReturnType<typeof openLink>

/** A call that is being served. Most never need their signal, hence it is made when it is read. */
class ServedCall implements CallContext {
  readonly body: Buffer | undefined
  #controller: AbortController | undefined
  #reason: Error | undefined

  constructor(body: Buffer | undefined) {
    this.body = body
  }

  get signal(): AbortSignal {
    this.#controller ??= new AbortController()
    if (this.#reason !== undefined) this.#controller.abort(this.#reason)
    return this.#controller.signal
  }

  abort(reason: Error) {
    this.#reason ??= reason
    this.#controller?.abort(this.#reason)
  }
}

/** Writes all frames of a turn of the event loop together. */
function makeOutput(socket: Duplex) {
  let frames: Buffer[] = []
  let bytes = 0

  const flush = () => {
    const buffers = frames
    const isSmall = bytes <= copiedBytes
    frames = []
    bytes = 0
    if (socket.destroyed) return
    if (isSmall) {
      socket.write(buffers.length === 1 ? (buffers[0] as Buffer) : Buffer.concat(buffers))
      return
    }
    socket.cork()
    for (const buffer of buffers) socket.write(buffer)
    socket.uncork()
  }

  return {
    send(kind: Kind, id: number, value: unknown, body?: Buffer) {
      const json = JSON.stringify(value ?? null)
      const jsonBytes = Buffer.byteLength(json)
      const bodyBytes = body?.length ?? 0
      const frame = Buffer.allocUnsafe(headBytes + jsonBytes)
      frame.writeUInt32LE(headBytes - 4 + jsonBytes + bodyBytes, 0)
      frame[4] = kind
      frame.writeUInt32LE(id, 5)
      frame.writeUInt32LE(jsonBytes, 9)
      frame.write(json, headBytes)
      if (frames.length === 0) setImmediate(flush)
      frames.push(frame)
      if (body !== undefined) frames.push(body)
      bytes += headBytes + jsonBytes + bodyBytes
    },
  }
}

/** Returns a function that takes chunks of the socket and passes on each complete frame. */
function makeFrameReader(receive: (kind: number, id: number, value: unknown, body: Buffer | undefined) => void) {
  let chunks: Buffer[] = []
  let buffered = 0
  /** Bytes of which nothing can be read before they have arrived. */
  let wanted = headBytes

  return (chunk: Buffer) => {
    chunks.push(chunk)
    buffered += chunk.length
    if (buffered < wanted) return
    const all = chunks.length === 1 ? chunk : Buffer.concat(chunks)
    let at = 0
    wanted = headBytes
    while (all.length - at >= headBytes) {
      const end = at + 4 + all.readUInt32LE(at)
      if (end > all.length) {
        wanted = end - at
        break
      }
      const jsonAt = at + headBytes
      const bodyAt = jsonAt + all.readUInt32LE(at + 9)
      const body = bodyAt === end ? undefined : all.subarray(bodyAt, end)
      receive(all[at + 4] ?? 0, all.readUInt32LE(at + 5), JSON.parse(all.toString('utf8', jsonAt, bodyAt)), body)
      at = end
    }
    chunks = at === all.length ? [] : [all.subarray(at)]
    buffered = all.length - at
  }
}
