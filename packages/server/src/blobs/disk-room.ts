import { mkdir, readdir, stat, statfs } from 'node:fs/promises'
import { join } from 'node:path'
import { Problem } from '../domain/problem.ts'

type Deps = {
  /** Of the disk that is asked. */
  dir: string
  /** What must stay free, for the database and everybody else on this disk. */
  reserveBytes: number
  /** Files in this directory may take so much together. Without: as much as there is. */
  budget?: { dir: string; bytes: number } | undefined
}

/** Between two looks what was taken since is counted, so that many who write at once cannot overlook each other. */
const lookEveryMs = 500
const budgetEveryMs = 10_000
const retryAfterSeconds = 30

/** Room for content on a disk. It is asked for before every piece that is written, and refused in time. */
export async function openDiskRoom(deps: Deps) {
  // A node whose database and content are elsewhere has nothing there yet, at its first start.
  await mkdir(deps.dir, { recursive: true, mode: 0o711 })
  let free = await readFree()
  let used = await readUsed()
  let looking: Promise<void> | undefined
  let lookedAtMs = performance.now()
  let measuredAtMs = lookedAtMs

  return {
    /** Throws a problem when there is none. */
    take(bytes: number) {
      lookAgain()
      requireRoom(bytes)
      free -= bytes
      used += bytes
    },
    /** Throws when there is none at all; nothing is taken. */
    requireSome() {
      lookAgain()
      requireRoom(1)
    },
    /** The disk itself is looked at for the rest: it knows when room came back. */
    release(bytes: number) {
      used = Math.max(0, used - bytes)
    },
    countFree: () => free,
    findFault(): string | undefined {
      lookAgain()
      if (free < deps.reserveBytes) return 'There is little room left on the disk: content is refused with 503.'
      if (deps.budget !== undefined && used >= deps.budget.bytes) {
        return 'Content of background jobs takes all the room it may have: submits are refused with 503.'
      }
      return undefined
    },
  }

  function requireRoom(bytes: number) {
    const isOver = deps.budget !== undefined && used + bytes > deps.budget.bytes
    if (isOver || free - bytes < deps.reserveBytes) throw newStorageFull()
  }

  function lookAgain() {
    if (looking !== undefined || performance.now() - lookedAtMs < lookEveryMs) return
    // A disk that cannot be looked at says so to whoever writes to it.
    const unknown = () => {}
    looking = look()
      .catch(unknown)
      .finally(() => {
        lookedAtMs = performance.now()
        looking = undefined
      })
  }

  async function look() {
    free = await readFree()
    if (performance.now() - measuredAtMs < budgetEveryMs) return
    used = await readUsed()
    measuredAtMs = performance.now()
  }

  async function readFree(): Promise<number> {
    const { bavail, bsize } = await statfs(deps.dir)
    return bavail * bsize
  }

  /** Only where somebody wants to know. Files that vanish meanwhile take no room. */
  async function readUsed(): Promise<number> {
    if (deps.budget === undefined) return 0
    const { dir } = deps.budget
    let sum = 0
    for (const name of await readdir(dir).catch(() => [])) {
      sum += await stat(join(dir, name)).then(
        ({ size }) => size,
        () => 0,
      )
    }
    return sum
  }
}

export type DiskRoom = Awaited<ReturnType<typeof openDiskRoom>>

const newStorageFull = (cause?: unknown) =>
  new Problem({ kind: 'storage-full', retryAfterSeconds }, cause === undefined ? {} : { cause })

/** What the system says of a file when there is no room, or no file descriptor, is a refusal, not our fault. */
export function toRoomProblem(error: unknown): unknown {
  const { code } = error as NodeJS.ErrnoException
  if (code === 'ENOSPC' || code === 'EDQUOT' || code === 'EFBIG') return newStorageFull(error)
  if (code === 'EMFILE' || code === 'ENFILE') {
    return new Problem({ kind: 'overloaded', retryAfterSeconds: 5 }, { cause: error })
  }
  return error
}
