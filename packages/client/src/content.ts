import { UnusableInput } from './errors.ts'
import { iterateStream } from './iterate-stream.ts'

/**
 * What can be scanned. A string is the path of a file, in Node alone. Streams of Node are async iterables. What is read
 * once, streams and iterables, is not sent again after its first byte was.
 */
export type FileInput =
  | string
  | Uint8Array
  | ArrayBuffer
  | Blob
  | ReadableStream<Uint8Array>
  | AsyncIterable<Uint8Array>

/** An input, opened. Whoever opened it closes it. */
export type Content = {
  /** That the input itself has. */
  name: string | undefined
  /** Bytes; undefined when only reading tells. */
  length: number | undefined
  /** False once something that can be read only once was begun. */
  canRead(): boolean
  /** From its beginning. A chunk may be written over as soon as the next one is asked for, if the reader says so. */
  read(reader?: { isDoneWithEach: boolean }): AsyncIterable<Uint8Array>
  /** All of it is in memory, or where the browser keeps it. */
  isWhole: boolean
  /** For those who send forms by the means of a browser. */
  toBlob(): Promise<Blob>
  close(): Promise<void>
}

/** Inputs that are the same everywhere; undefined for a path. */
export function findContent(input: FileInput): Content | undefined {
  if (typeof input === 'string') return undefined
  if (input instanceof Blob) return toBlobContent(input)
  if (input instanceof ArrayBuffer) return toBytesContent(new Uint8Array(input))
  if (ArrayBuffer.isView(input)) return toBytesContent(new Uint8Array(input.buffer, input.byteOffset, input.byteLength))
  if (isAsyncIterable(input)) return toOnceContent(input)
  if (isReadableStream(input)) return toOnceContent(iterateStream(input))
  throw new UnusableInput(
    `Cannot scan ${input === null ? 'null' : `a value of type ${typeof input}`}. Give a path, bytes, a Blob or a stream.`,
  )
}

export const requireSome = (length: number | undefined, what: string) => {
  if (length === 0) throw new UnusableInput(`${what} is empty. There is nothing to scan in it.`)
}

const nothingToClose = async () => {}

function toBlobContent(blob: Blob): Content {
  const name = 'name' in blob && typeof blob.name === 'string' && blob.name !== '' ? blob.name : undefined
  requireSome(blob.size, name ?? 'The blob')
  return {
    name,
    length: blob.size,
    canRead: () => true,
    read: () => iterateStream(blob.stream()),
    isWhole: true,
    toBlob: async () => blob,
    close: nothingToClose,
  }
}

const sliceBytes = 256 * 1024

function toBytesContent(bytes: Uint8Array): Content {
  requireSome(bytes.length, 'The buffer')
  return {
    name: undefined,
    length: bytes.length,
    canRead: () => true,
    // In slices, so that progress can be told.
    async *read() {
      for (let at = 0; at < bytes.length; at += sliceBytes) yield bytes.subarray(at, at + sliceBytes)
    },
    isWhole: true,
    toBlob: async () => new Blob([bytes as Uint8Array<ArrayBuffer>]),
    close: nothingToClose,
  }
}

function toOnceContent(source: AsyncIterable<unknown>): Content {
  let iterator: AsyncIterator<unknown> | undefined
  let kept: Blob | undefined
  const read = () => {
    if (iterator !== undefined) throw new UnusableInput('The stream was read already. Give a new one for every scan.')
    iterator = source[Symbol.asyncIterator]()
    return readBytes(iterator)
  }
  return {
    name: 'path' in source && typeof source.path === 'string' ? source.path.replace(/^.*[\\/]/, '') : undefined,
    length: undefined,
    canRead: () => iterator === undefined || kept !== undefined,
    read,
    isWhole: false,
    async toBlob() {
      kept ??= await collect(read())
      return kept
    },
    async close() {
      // Nothing is waited for: whoever calls this may do so because no more chunks come.
      if ('destroy' in source && typeof source.destroy === 'function') source.destroy()
      else (iterator ?? source[Symbol.asyncIterator]()).return?.().catch(() => {})
    },
  }
}

/** A stream of text, or of objects, would otherwise be sent as something else than it is. */
async function* readBytes(iterator: AsyncIterator<unknown>): AsyncGenerator<Uint8Array> {
  for (;;) {
    const { done, value } = await iterator.next().catch((cause: unknown) => {
      const why = cause instanceof Error ? cause.message : String(cause)
      throw new UnusableInput(`The stream could not be read to its end: ${why}`, { cause })
    })
    if (done) return
    if (value instanceof Uint8Array) yield value
    else if (typeof value === 'string') yield new TextEncoder().encode(value)
    else throw new UnusableInput(`The stream gave a value of type ${typeof value}. It must give bytes.`)
  }
}

async function collect(source: AsyncIterable<Uint8Array>): Promise<Blob> {
  const parts: Uint8Array<ArrayBuffer>[] = []
  for await (const chunk of source) parts.push(chunk as Uint8Array<ArrayBuffer>)
  const blob = new Blob(parts)
  requireSome(blob.size, 'The stream')
  return blob
}

const isAsyncIterable = (value: unknown): value is AsyncIterable<Uint8Array> =>
  typeof value === 'object' && value !== null && Symbol.asyncIterator in value

const isReadableStream = (value: unknown): value is ReadableStream<Uint8Array> =>
  typeof value === 'object' && value !== null && 'getReader' in value
