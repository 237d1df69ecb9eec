import { UnusableInput } from './errors.ts'
import { iterateStream } from './iterate-stream.ts'

/**
 * Content to scan. A string is the path of a file, in Node only. Node streams are async iterables. Streams and iterables
 * can be read once, so the client does not retry after it has read their first byte.
 */
export type FileInput =
  | string
  | Uint8Array
  | ArrayBuffer
  | Blob
  | ReadableStream<Uint8Array>
  | AsyncIterable<Uint8Array>

/** An opened input. The caller that opened it must close it. */
export type Content = {
  /** Name that the input itself has, such as that of a file. */
  name: string | undefined
  /** Length in bytes; undefined for a stream. */
  length: number | undefined
  /** False once reading has begun of content that can be read only once. */
  canRead(): boolean
  /** Reads from the beginning. With `canReuseChunks`, a chunk is valid only until the next one is requested. */
  read(options?: { canReuseChunks: boolean }): AsyncIterable<Uint8Array>
  /** Whether the content is in memory or in a Blob. */
  isInMemory: boolean
  /** All of the content, for transports that let the platform encode the form. */
  toBlob(): Promise<Blob>
  close(): Promise<void>
}

/** Opens an input that every platform supports; undefined for a path. */
export function findContent(input: FileInput): Content | undefined {
  if (typeof input === 'string') return undefined
  if (input instanceof Blob) return toBlobContent(input)
  if (input instanceof ArrayBuffer) return toBytesContent(new Uint8Array(input))
  if (ArrayBuffer.isView(input)) return toBytesContent(new Uint8Array(input.buffer, input.byteOffset, input.byteLength))
  if (isAsyncIterable(input)) return toStreamContent(input)
  if (isReadableStream(input)) return toStreamContent(iterateStream(input))
  throw new UnusableInput(
    `Cannot scan ${input === null ? 'null' : `a value of type ${typeof input}`}. Pass a path, bytes, a Blob or a stream.`,
  )
}

export const requireNotEmpty = (length: number | undefined, subject: string) => {
  if (length === 0) throw new UnusableInput(`${subject} is empty: there is nothing to scan.`)
}

const nothingToClose = async () => {}

function toBlobContent(blob: Blob): Content {
  const name = 'name' in blob && typeof blob.name === 'string' && blob.name !== '' ? blob.name : undefined
  requireNotEmpty(blob.size, name ?? 'The blob')
  return {
    name,
    length: blob.size,
    canRead: () => true,
    read: () => iterateStream(blob.stream()),
    isInMemory: true,
    toBlob: async () => blob,
    close: nothingToClose,
  }
}

const sliceBytes = 256 * 1024

function toBytesContent(bytes: Uint8Array): Content {
  requireNotEmpty(bytes.length, 'The buffer')
  return {
    name: undefined,
    length: bytes.length,
    canRead: () => true,
    // Slices let the transport report progress.
    async *read() {
      for (let at = 0; at < bytes.length; at += sliceBytes) yield bytes.subarray(at, at + sliceBytes)
    },
    isInMemory: true,
    toBlob: async () => new Blob([bytes as Uint8Array<ArrayBuffer>]),
    close: nothingToClose,
  }
}

function toStreamContent(source: AsyncIterable<unknown>): Content {
  let iterator: AsyncIterator<unknown> | undefined
  let blob: Blob | undefined
  const read = () => {
    if (iterator !== undefined)
      throw new UnusableInput('The stream has already been read. Pass a new one for every scan.')
    iterator = source[Symbol.asyncIterator]()
    return readBytes(iterator)
  }
  return {
    name: 'path' in source && typeof source.path === 'string' ? source.path.replace(/^.*[\\/]/, '') : undefined,
    length: undefined,
    canRead: () => iterator === undefined || blob !== undefined,
    read,
    isInMemory: false,
    async toBlob() {
      blob ??= await collect(read())
      return blob
    },
    async close() {
      // The caller may close a stream because it has stalled, so nothing here waits for the stream.
      if ('destroy' in source && typeof source.destroy === 'function') source.destroy()
      else (iterator ?? source[Symbol.asyncIterator]()).return?.().catch(() => {})
    },
  }
}

/** Accepts bytes and text; chunks of another type have no defined encoding. */
async function* readBytes(iterator: AsyncIterator<unknown>): AsyncGenerator<Uint8Array> {
  for (;;) {
    const { done, value } = await iterator.next().catch((cause: unknown) => {
      const reason = cause instanceof Error ? cause.message : String(cause)
      throw new UnusableInput(`Reading the stream failed: ${reason}`, { cause })
    })
    if (done) return
    if (value instanceof Uint8Array) yield value
    else if (typeof value === 'string') yield new TextEncoder().encode(value)
    else throw new UnusableInput(`The stream produced a value of type ${typeof value}. It must produce bytes.`)
  }
}

async function collect(source: AsyncIterable<Uint8Array>): Promise<Blob> {
  const parts: Uint8Array<ArrayBuffer>[] = []
  for await (const chunk of source) parts.push(chunk as Uint8Array<ArrayBuffer>)
  const blob = new Blob(parts)
  requireNotEmpty(blob.size, 'The stream')
  return blob
}

const isAsyncIterable = (value: unknown): value is AsyncIterable<Uint8Array> =>
  typeof value === 'object' && value !== null && Symbol.asyncIterator in value

const isReadableStream = (value: unknown): value is ReadableStream<Uint8Array> =>
  typeof value === 'object' && value !== null && 'getReader' in value
