import { constants } from 'node:fs'
import { type FileHandle, open } from 'node:fs/promises'
import { basename } from 'node:path'
import { type Content, requireSome } from '../content.ts'
import { UnusableInput } from '../errors.ts'

const chunkBytes = 256 * 1024
/** Without it, opening a named pipe waits until somebody writes to it. Windows has neither. */
const readOnly = constants.O_RDONLY | (constants.O_NONBLOCK ?? 0)

/** A file of the disk. It is opened once, and every attempt reads the same file, whatever the path leads to by then. */
export async function openFile(path: string): Promise<Content> {
  const { handle, length } = await openRegular(path)
  return {
    name: basename(path),
    length,
    canRead: () => true,
    read: (reader) => readWhole(handle, length, path, reader?.isDoneWithEach),
    isWhole: false,
    async toBlob() {
      const chunks: Uint8Array<ArrayBuffer>[] = []
      for await (const chunk of readWhole(handle, length, path)) chunks.push(Uint8Array.from(chunk))
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
    if (stat.isDirectory()) throw new UnusableInput(`${path} is a directory. Give the path of a file.`)
    if (!stat.isFile()) throw new UnusableInput(`${path} is no regular file. Give a stream of it instead.`)
    requireSome(stat.size, path)
    return { handle, length: stat.size }
  } catch (error) {
    await handle?.close()
    throw error instanceof UnusableInput ? error : toUnusable(path, error)
  }
}

async function* readWhole(handle: FileHandle, length: number, path: string, isOneEnough = false) {
  const newChunk = () => Buffer.allocUnsafe(Math.min(chunkBytes, length))
  let chunk = newChunk()
  for (let at = 0; at < length; ) {
    const wanted = Math.min(chunkBytes, length - at)
    const { bytesRead } = await handle.read(chunk, 0, wanted, at).catch((error) => {
      throw toUnusable(path, error)
    })
    if (bytesRead === 0) throw new UnusableInput(`${path} became shorter while it was read. Try again.`)
    at += bytesRead
    yield chunk.subarray(0, bytesRead)
    if (!isOneEnough) chunk = newChunk()
  }
}

function toUnusable(path: string, cause: unknown): UnusableInput {
  const code = cause instanceof Error && 'code' in cause ? String(cause.code) : ''
  return new UnusableInput(`${reasons[code]?.(path) ?? `${path} cannot be read (${code || String(cause)}).`}`, {
    cause,
  })
}

const reasons: Record<string, (path: string) => string> = {
  ENOENT: (path) => `There is no file ${path}. Check the path.`,
  ENOTDIR: (path) => `There is no file ${path}. Check the path.`,
  EACCES: (path) => `There is no permission to read ${path}.`,
  EPERM: (path) => `There is no permission to read ${path}.`,
  EISDIR: (path) => `${path} is a directory. Give the path of a file.`,
  EMFILE: (path) => `Too many files are open to read ${path}. Scan fewer at a time.`,
}
