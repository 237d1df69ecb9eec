import { closeSync, constants, fstatSync, open, openSync, read, readSync } from 'node:fs'
import type { Readable } from 'node:stream'
import { promisify } from 'node:util'
import type { FilePath } from '../targets/file-path.ts'

/** Files up to this size are read whole: they are opened once, and can be sent again. */
const maxWholeFileBytes = 256 * 1024

/** Streams up to this length are held in memory, so that they can be sent in one piece and sent again. */
const maxWholeStreamBytes = 1024 * 1024

/** Without O_NONBLOCK, opening a named pipe blocks until another process writes to it. Windows has neither flag. */
const { O_RDONLY, O_NONBLOCK = 0, O_NOFOLLOW = 0 } = constants

/** After a read slower than `slowMs`, the next `asyncReads` files are read in the thread pool. */
const slowMs = 2
const asyncReads = 200

/** Number of bytes from which an image format is recognised. */
const headBytes = 12

/** `whole` is the content of a small file; of a larger file only `head`, its first bytes, is read. */
export type ReadFile = { size: number; whole?: Buffer; head: Buffer }

/**
 * Reads files; errors of the file system are thrown. A path that the user named may be a link, a path found in a
 * directory may not.
 *
 * Files in the page cache are read within microseconds by a blocking call. The thread pool takes ten times as long, which
 * was a quarter of the time for a tree of small files, so it is used only after a slow read.
 */
export function makeReadFile() {
  let asyncReadsLeft = 0
  return async ({ raw }: FilePath, { isNamed }: { isNamed: boolean }): Promise<ReadFile> => {
    const flags = O_RDONLY | O_NONBLOCK | (isNamed ? 0 : O_NOFOLLOW)
    if (asyncReadsLeft > 0) {
      asyncReadsLeft--
      return await readWith(asyncReader, raw, flags)
    }
    const startedAt = performance.now()
    try {
      return await readWith(blockingReader, raw, flags)
    } finally {
      if (performance.now() - startedAt > slowMs) asyncReadsLeft = asyncReads
    }
  }
}

type Reader = {
  open(path: string | Buffer, flags: number): number | Promise<number>
  read(file: number, buffer: Buffer, at: number): number | Promise<number>
}

const blockingReader: Reader = {
  open: openSync,
  read: (file, buffer, at) => readSync(file, buffer, at, buffer.length - at, at),
}

const readAsync = promisify(read)

const asyncReader: Reader = {
  open: promisify(open),
  read: async (file, buffer, at) => (await readAsync(file, buffer, at, buffer.length - at, at)).bytesRead,
}

async function readWith(reader: Reader, raw: string | Buffer, flags: number): Promise<ReadFile> {
  const file = await reader.open(raw, flags)
  try {
    const stats = fstatSync(file)
    if (!stats.isFile()) throw new Error('No longer a regular file')
    const { size } = stats
    const buffer = Buffer.allocUnsafe(size <= maxWholeFileBytes ? size : headBytes)
    let length = 0
    for (let bytes = -1; bytes !== 0 && length < buffer.length; length += bytes) {
      bytes = await reader.read(file, buffer, length)
    }
    const head = buffer.subarray(0, length)
    return size <= maxWholeFileBytes ? { size: length, whole: head, head } : { size, head }
  } finally {
    closeSync(file)
  }
}

/** Whether content starts like a JPEG, PNG, GIF or WebP image, judged by the same bytes as the service does. */
export function isImageHead(head: Buffer): boolean {
  const text = head.toString('latin1', 0, headBytes)
  return (
    text.startsWith('\xff\xd8\xff') ||
    text.startsWith('\x89PNG') ||
    text.startsWith('GIF8') ||
    (text.startsWith('RIFF') && text.endsWith('WEBP'))
  )
}

/** The whole content of a short stream, or else an iterable over all of it from its beginning. */
export async function readStream(stream: Readable): Promise<Buffer | AsyncIterable<Uint8Array>> {
  const iterator = stream[Symbol.asyncIterator]() as AsyncIterator<Buffer>
  const chunks: Buffer[] = []
  for (let bytes = 0; bytes <= maxWholeStreamBytes; ) {
    const { done, value } = await iterator.next()
    if (done) return Buffer.concat(chunks)
    chunks.push(value)
    bytes += value.length
  }
  return (async function* () {
    try {
      yield* chunks
      for (;;) {
        const { done, value } = await iterator.next()
        if (done) return
        yield value
      }
    } finally {
      stream.destroy()
    }
  })()
}
