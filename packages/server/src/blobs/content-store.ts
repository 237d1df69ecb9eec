import { mkdir, readdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { v7 as newUuid } from 'uuid'
import type { ContentStore } from '../domain/ports/content-store.ts'
import { findProcessIdentity, isRunning } from '../runtime/process-identity.ts'
import { makeBlockPool } from './block-pool.ts'
import { makeContentWriter } from './content-writer.ts'
import { toRoomProblem } from './disk-room.ts'
import type { MasterKey } from './master-key.ts'
import { createSealedFile, type FileBounds } from './sealed-file.ts'

/** Of content about which nothing else is said. */
const memoryBytes = 1024 * 1024

/**
 * Content of scans that run in this process. Larger content lies in a directory that carries the name of the process:
 * when the process is gone, so is every reason to keep it, and whoever sweeps next removes it.
 */
export function openContentStore(deps: { dir: string; master: MasterKey } & FileBounds): ContentStore & {
  sweep(): Promise<number>
  close(): Promise<void>
} {
  const identity = findProcessIdentity(process.pid) ?? String(process.pid)
  const own = join(deps.dir, identity)
  // A byte more than a block ever holds: so no part of one is taken for memory that may be freed.
  const pool = makeBlockPool({ blockBytes: memoryBytes + 1, maxFree: 16 })
  let created: Promise<unknown> | undefined

  async function createFile() {
    created ??= mkdir(own, { recursive: true, mode: 0o700 })
    await created.catch((error) => {
      // The next one tries again: the disk may have room by then.
      created = undefined
      throw toRoomProblem(error)
    })
    return createSealedFile(join(own, newUuid()), deps.master, deps)
  }

  return {
    newWriter: (options) => makeContentWriter({ memoryBytes, ...options, pool, createFile, memory: deps.memory }),
    /** Removes what processes that ended without a word left behind; says how many there were. */
    async sweep() {
      const owners = await readdir(deps.dir).catch(() => [])
      const gone = owners.filter((owner) => owner !== identity && !isRunning(owner))
      for (const owner of gone) await rm(join(deps.dir, owner), { recursive: true, force: true })
      return gone.length
    },
    close: () => rm(own, { recursive: true, force: true }),
  }
}
