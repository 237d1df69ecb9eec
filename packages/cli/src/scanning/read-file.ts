import { closeSync, constants, fstatSync, open, read } from 'node:fs'
import { promisify } from 'node:util'
import type { Place } from '../targets/place.ts'
import { headBytes } from './image-head.ts'

/** Up to this a file is read at once: it is opened and closed once, and can be sent again. */
const smallBytes = 256 * 1024

/** Without O_NONBLOCK, opening a named pipe waits until somebody writes to it. Windows has none of them. */
const { O_RDONLY, O_NONBLOCK = 0, O_NOFOLLOW = 0 } = constants

const [openFile, readBytes] = [promisify(open), promisify(read)]

/** `whole` is all of a small file; of a larger one `head` has its first bytes, and the rest is left where it is. */
export type ReadFile = { size: number; whole?: Buffer; head: Buffer }

/**
 * Throws what the system says. A file that somebody has named may be a link; one that was found in a directory not. Only
 * what may wait for a disk is handed to another thread: for a small file that costs more than the work itself.
 */
export async function readFile({ raw }: Place, { isNamed }: { isNamed: boolean }): Promise<ReadFile> {
  const file = await openFile(raw, O_RDONLY | O_NONBLOCK | (isNamed ? 0 : O_NOFOLLOW))
  try {
    const stats = fstatSync(file)
    if (!stats.isFile()) throw new Error('Not a file any more')
    const { size } = stats
    const bytes = await readUpTo(file, size <= smallBytes ? size : headBytes)
    return size <= smallBytes ? { size: bytes.length, whole: bytes, head: bytes } : { size, head: bytes }
  } finally {
    closeSync(file)
  }
}

async function readUpTo(file: number, bytes: number): Promise<Buffer> {
  const buffer = Buffer.allocUnsafe(bytes)
  let at = 0
  while (at < bytes) {
    const { bytesRead } = await readBytes(file, buffer, at, bytes - at, at)
    if (bytesRead === 0) break
    at += bytesRead
  }
  return buffer.subarray(0, at)
}
