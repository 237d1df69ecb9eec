import { mkdir, readdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { v7 as newUuid } from 'uuid'
import type { ContentStore } from '../domain/ports/content-store.ts'
import { findProcessIdentity, isRunning } from '../runtime/process.ts'
import { makeContentWriter } from './content-writer.ts'
import { toStorageProblem } from './disk-space.ts'
import type { MasterKey } from './master-key.ts'
import { makeBlockPool } from './memory-content.ts'
import { createSealedFile, type FileBounds } from './sealed-file.ts'

/** The largest content that stays in memory, unless the writer is given another limit. */
const memoryBytes = 1024 * 1024

/**
 * Content of scans that run in this process. Larger content lies in a directory that is named after the process, so
 * that after a crash the sweeper of any process can tell that nobody needs it.
 */
export function openContentStore(deps: { dir: string; master: MasterKey } & FileBounds): ContentStore & {
  sweep(): Promise<number>
  close(): Promise<void>
} {
  const identity = findProcessIdentity(process.pid) ?? String(process.pid)
  const own = join(deps.dir, identity)
  // One byte more than content ever fills, so that a block is never mistaken for a chunk whose memory may be freed.
  const pool = makeBlockPool({ blockBytes: memoryBytes + 1, maxFree: 16 })
  let created: Promise<unknown> | undefined

  async function createFile() {
    created ??= mkdir(own, { recursive: true, mode: 0o700 })
    await created.catch((error) => {
      // The next upload tries again: the disk may have space by then.
      created = undefined
      throw toStorageProblem(error)
    })
    return createSealedFile(join(own, newUuid()), deps.master, deps)
  }

  return {
    newWriter: (options) => makeContentWriter({ memoryBytes, ...options, pool, createFile, memory: deps.memory }),
    /** Removes the content of processes that crashed, and returns their number. */
    async sweep() {
      const owners = await readdir(deps.dir).catch(() => [])
      const gone = owners.filter((owner) => owner !== identity && !isRunning(owner))
      for (const owner of gone) await rm(join(deps.dir, owner), { recursive: true, force: true })
      return gone.length
    },
    close: () => rm(own, { recursive: true, force: true }),
  }
}
