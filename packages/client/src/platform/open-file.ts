import { constants } from 'node:fs'
import { type FileHandle, open } from 'node:fs/promises'
import { basename } from 'node:path'
import { type Content, requireNotEmpty } from '../content.ts'
import { UnusableInput } from '../errors.ts'

const chunkBytes = 256 * 1024
/** Without O_NONBLOCK, opening a named pipe blocks until another process writes to it. Windows has neither. */
const readOnly = constants.O_RDONLY | (constants.O_NONBLOCK ?? 0)

/** Opens a file once, so that every attempt reads the same file even if the path changes. */
export async function openFile(path: string): Promise<Content> {
  const { handle, length } = await openRegular(path)
  return {
    name: basename(path),
    length,
    canRead: () => true,
    read: (options) => readChunks(handle, length, path, options?.canReuseChunks),
    isInMemory: false,
    async toBlob() {
      const chunks: Uint8Array<ArrayBuffer>[] = []
      for await (const chunk of readChunks(handle, length, path)) chunks.push(Uint8Array.from(chunk))
      return new Blob(chunks)
    },
    close: () => handle.close(),
  }
}

async function openRegular(path: string) {
  let handle: FileHandle | undefined
  try {
    handle = await open(path, readOnly)
    const stat = await handle.stat()
    if (stat.isDirectory()) throw new UnusableInput(`${path} is a directory. Pass the path of a file.`)
    if (!stat.isFile()) throw new UnusableInput(`${path} is not a regular file. Pass a stream instead.`)
    requireNotEmpty(stat.size, path)
    return { handle, length: stat.size }
  } catch (error) {
    await handle?.close()
    throw error instanceof UnusableInput ? error : toUnusable(path, error)
  }
}

async function* readChunks(handle: FileHandle, length: number, path: string, canReuseChunks = false) {
  const newChunk = () => Buffer.allocUnsafe(Math.min(chunkBytes, length))
  let chunk = newChunk()
  for (let at = 0; at < length; ) {
    const wanted = Math.min(chunkBytes, length - at)
    const { bytesRead } = await handle.read(chunk, 0, wanted, at).catch((error) => {
      throw toUnusable(path, error)
    })
    if (bytesRead === 0) throw new UnusableInput(`${path} was truncated while it was read. Try again.`)
    at += bytesRead
    yield chunk.subarray(0, bytesRead)
    if (!canReuseChunks) chunk = newChunk()
  }
}

function toUnusable(path: string, cause: unknown): UnusableInput {
  const code = cause instanceof Error && 'code' in cause ? String(cause.code) : ''
  return new UnusableInput(`${reasons[code]?.(path) ?? `Cannot read ${path} (${code || String(cause)}).`}`, {
    cause,
  })
}

const reasons: Record<string, (path: string) => string> = {
  ENOENT: (path) => `${path} does not exist. Check the path.`,
  ENOTDIR: (path) => `${path} does not exist. Check the path.`,
  EACCES: (path) => `Permission to read ${path} is denied.`,
  EPERM: (path) => `Permission to read ${path} is denied.`,
  EISDIR: (path) => `${path} is a directory. Pass the path of a file.`,
  EMFILE: (path) => `Cannot open ${path}: too many open files. Scan fewer files at a time.`,
}
