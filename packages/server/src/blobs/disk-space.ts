import { type FileHandle, mkdir, readdir, stat, statfs } from 'node:fs/promises'
import { join } from 'node:path'
import { Problem } from '../domain/problem.ts'

type Deps = {
  /** A directory on the disk. */
  dir: string
  /** Space that must stay free, for the database and the other users of the disk. */
  reserveBytes: number
  /** Limits the files of one directory; without it, they may use the whole disk. */
  budget?: { dir: string; bytes: number } | undefined
}

/** How often the free space is read. In between it is counted, so that parallel writers cannot overlook each other. */
const readFreeEveryMs = 500
const readUsedEveryMs = 10_000
const retryAfterSeconds = 30
/** Share of free space below which operators are warned. */
const warningShare = 0.05

/** Grants space for content on a disk, before each write, so that content is refused before the disk is full. */
export async function openDiskSpace(deps: Deps) {
  // At the first start of a node with a remote database and remote content the directory does not exist yet.
  await mkdir(deps.dir, { recursive: true, mode: 0o711 })
  let total = 0
  let free = await readFree()
  let used = await readUsed()
  let reading: Promise<void> | undefined
  let freeReadAtMs = performance.now()
  let usedReadAtMs = freeReadAtMs

  return {
    /** Throws a `storage-full` problem when there is not enough space. */
    take(bytes: number) {
      refresh()
      requireSpace(bytes)
      free -= bytes
      used += bytes
    },
    /** Throws when there is no space at all; takes nothing. */
    requireSome() {
      refresh()
      requireSpace(1)
    },
    /** Returns space to the budget. Free space of the disk is only read, because the disk knows it best. */
    release(bytes: number) {
      used = Math.max(0, used - bytes)
    },
    countFree: () => free,
    /** A sentence while less than a twentieth of the disk is free. */
    findWarning(): string | undefined {
      refresh()
      if (free >= total * warningShare) return undefined
      const percent = Math.floor((free / Math.max(1, total)) * 100)
      return `${percent} % of the disk of the data directory are free.`
    },
    findFault(): string | undefined {
      refresh()
      if (free < deps.reserveBytes) return 'The disk is almost full: uploads are refused with 503.'
      if (deps.budget !== undefined && used >= deps.budget.bytes) {
        return 'The content of background jobs has reached its limit: submits are refused with 503.'
      }
      return undefined
    },
  }

  function requireSpace(bytes: number) {
    const isOverBudget = deps.budget !== undefined && used + bytes > deps.budget.bytes
    if (isOverBudget || free - bytes < deps.reserveBytes) throw newStorageFull()
  }

  function refresh() {
    if (reading !== undefined || performance.now() - freeReadAtMs < readFreeEveryMs) return
    // A disk that cannot be read reports its error to the next write.
    reading = read()
      .catch(() => {})
      .finally(() => {
        freeReadAtMs = performance.now()
        reading = undefined
      })
  }

  async function read() {
    free = await readFree()
    if (performance.now() - usedReadAtMs < readUsedEveryMs) return
    used = await readUsed()
    usedReadAtMs = performance.now()
  }

  async function readFree(): Promise<number> {
    const { bavail, blocks, bsize } = await statfs(deps.dir)
    total = blocks * bsize
    return bavail * bsize
  }

  /** Sums up the files of the budget. A file that vanishes meanwhile uses no space. */
  async function readUsed(): Promise<number> {
    if (deps.budget === undefined) return 0
    const { dir } = deps.budget
    let sum = 0
    for (const name of await readdir(dir).catch(() => [])) {
      const { size } = await stat(join(dir, name)).catch(() => ({ size: 0 }))
      sum += size
    }
    return sum
  }
}

export type DiskSpace = Awaited<ReturnType<typeof openDiskSpace>>

const newStorageFull = (cause?: unknown) =>
  new Problem({ kind: 'storage-full', retryAfterSeconds }, cause === undefined ? {} : { cause })

/**
 * Turns errors of the system about missing space or file descriptors into refusals; returns any other error as it is.
 */
export function toStorageProblem(error: unknown): unknown {
  const { code } = error as NodeJS.ErrnoException
  if (code === 'ENOSPC' || code === 'EDQUOT' || code === 'EFBIG') return newStorageFull(error)
  if (code === 'EMFILE' || code === 'ENFILE') {
    return new Problem({ kind: 'overloaded', retryAfterSeconds: 5 }, { cause: error })
  }
  return error
}

export const countBytes = (batch: Buffer[]): number => batch.reduce((sum, { length }) => sum + length, 0)

/**
 * Writes the whole batch. A disk that is almost full writes a part and reports nothing; the second write reports it.
 */
export async function writeAll(file: FileHandle, batch: Buffer[], offset?: number): Promise<void> {
  try {
    const { bytesWritten } = await file.writev(batch, offset)
    if (bytesWritten < countBytes(batch)) await writeRest(file, Buffer.concat(batch), bytesWritten, offset)
  } catch (error) {
    throw toStorageProblem(error)
  }
}

async function writeRest(file: FileHandle, whole: Buffer, from: number, offset: number | undefined) {
  for (let at = from; at < whole.length; ) {
    const { bytesWritten } = await file.write(whole, at, whole.length - at, offset === undefined ? null : offset + at)
    // Content with a gap must not count as stored.
    if (bytesWritten === 0) throw new Error(`The disk wrote ${at} of ${whole.length} bytes`)
    at += bytesWritten
  }
}
