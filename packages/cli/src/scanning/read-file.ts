import { constants } from 'node:fs'
import { type FileHandle, open } from 'node:fs/promises'
import type { Place } from '../targets/place.ts'
import { headBytes } from './image-head.ts'

/** Up to this a file is read at once: it is opened and closed once, and can be sent again. */
const smallBytes = 256 * 1024

/** Without O_NONBLOCK, opening a named pipe waits until somebody writes to it. Windows has none of them. */
const { O_RDONLY, O_NONBLOCK = 0, O_NOFOLLOW = 0 } = constants

/** `whole` is all of a small file; of a larger one `head` has its first bytes, and the rest is left where it is. */
export type ReadFile = { size: number; whole?: Buffer; head: Buffer }

/** Throws what the system says. A file that somebody has named may be a link; one that was found in a directory not. */
export async function readFile({ raw }: Place, { isNamed }: { isNamed: boolean }): Promise<ReadFile> {
  const handle = await open(raw, O_RDONLY | O_NONBLOCK | (isNamed ? 0 : O_NOFOLLOW))
  try {
    const stats = await handle.stat()
    if (!stats.isFile()) throw new Error('Not a file any more')
    const { size } = stats
    const read = await readUpTo(handle, size <= smallBytes ? size : headBytes)
    return size <= smallBytes ? { size: read.length, whole: read, head: read } : { size, head: read }
  } finally {
    await handle.close()
  }
}

async function readUpTo(handle: FileHandle, bytes: number): Promise<Buffer> {
  const buffer = Buffer.allocUnsafe(bytes)
  let at = 0
  while (at < bytes) {
    const { bytesRead } = await handle.read(buffer, at, bytes - at, at)
    if (bytesRead === 0) break
    at += bytesRead
  }
  return buffer.subarray(0, at)
}
