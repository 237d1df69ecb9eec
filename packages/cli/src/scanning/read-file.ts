import { closeSync, constants, fstatSync, open, openSync, read, readSync } from 'node:fs'
import { promisify } from 'node:util'
import type { Place } from '../targets/place.ts'
import { headBytes } from './image-head.ts'

/** Up to this a file is read at once: it is opened and closed once, and can be sent again. */
const smallBytes = 256 * 1024

/** Without O_NONBLOCK, opening a named pipe waits until somebody writes to it. Windows has none of them. */
const { O_RDONLY, O_NONBLOCK = 0, O_NOFOLLOW = 0 } = constants

/** A disk that took longer than this is not waited for, for as many files. */
const slowMs = 2
const filesAside = 200

/** `whole` is all of a small file; of a larger one `head` has its first bytes, and the rest is left where it is. */
export type ReadFile = { size: number; whole?: Buffer; head: Buffer }

/**
 * Reads one file after the other, or several at a time, and throws what the system says. A file that somebody has named
 * may be a link; one that was found in a directory not.
 *
 * Files in the memory of the system are read within microseconds. Having another thread do it takes ten times as long,
 * and was a quarter of all time for a tree of small files. So that is left to disks that are slow.
 */
export function makeReadFile() {
  let left = 0
  return async ({ raw }: Place, { isNamed }: { isNamed: boolean }): Promise<ReadFile> => {
    const flags = O_RDONLY | O_NONBLOCK | (isNamed ? 0 : O_NOFOLLOW)
    if (left > 0) {
      left--
      return await readWith(aside, raw, flags)
    }
    const startedAt = performance.now()
    try {
      return await readWith(atOnce, raw, flags)
    } finally {
      if (performance.now() - startedAt > slowMs) left = filesAside
    }
  }
}

type Means = {
  open(path: string | Buffer, flags: number): number | Promise<number>
  read(file: number, buffer: Buffer, at: number): number | Promise<number>
}

const atOnce: Means = {
  open: openSync,
  read: (file, buffer, at) => readSync(file, buffer, at, buffer.length - at, at),
}

const [openAside, readAside] = [promisify(open), promisify(read)]

const aside: Means = {
  open: openAside,
  read: async (file, buffer, at) => (await readAside(file, buffer, at, buffer.length - at, at)).bytesRead,
}

async function readWith(means: Means, raw: string | Buffer, flags: number): Promise<ReadFile> {
  const file = await means.open(raw, flags)
  try {
    const stats = fstatSync(file)
    if (!stats.isFile()) throw new Error('Not a file any more')
    const { size } = stats
    const buffer = Buffer.allocUnsafe(size <= smallBytes ? size : headBytes)
    let length = 0
    for (let bytes = -1; bytes !== 0 && length < buffer.length; length += bytes) {
      bytes = await means.read(file, buffer, length)
    }
    const head = buffer.subarray(0, length)
    return size <= smallBytes ? { size: length, whole: head, head } : { size, head }
  } finally {
    closeSync(file)
  }
}
