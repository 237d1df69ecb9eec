import { mkdirSync, readFileSync } from 'node:fs'
import { open, readdir, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { v7 as newUuid } from 'uuid'
import type { JobContents } from '../domain/ports/content-store.ts'
import { writeOnce } from '../runtime/write-once.ts'
import type { MasterKey } from './master-key.ts'
import { makePersistentContents, type PersistentStorage } from './persistent-contents.ts'
import { createSealedFile, type FileBounds, removeSealedFile, reopenSealedFile } from './sealed-file.ts'

type Deps = { dir: string; master: MasterKey } & FileBounds

/** Content of background scans on a disk. */
export const makeJobContents = (deps: Deps): JobContents =>
  makePersistentContents({ master: deps.master, storage: makeDiskStorage(deps), memory: deps.memory })

function makeDiskStorage({ dir, master, ...bounds }: Deps): PersistentStorage {
  const toPath = (key: string) => join(dir, key)
  return {
    id: readStoreId(dir),
    requireRoom: () => bounds.room?.requireSome(),
    create: (key) => createSealedFile(toPath(key), master, bounds),
    reopen: (key, bytes) => reopenSealedFile(toPath(key), master, bytes),
    async remove(key) {
      const path = toPath(key)
      const { size } = await stat(path).catch(() => ({ size: 0 }))
      await removeSealedFile(path).catch(ignoreMissing)
      bounds.room?.release(size)
    },
    syncNames: () => syncDirectory(dir),
    async listKeys(before) {
      const keys = (await readdir(dir)).filter((name) => name !== storeFile)
      const found = await Promise.all(keys.map(async (key) => ({ key, at: await findTime(toPath(key)) })))
      return found.filter(({ at }) => at !== undefined && at < before).map(({ key }) => key)
    },
  }
}

/** Says which directory this is, wherever it is mounted: whoever reads the same one can open what lies in it. */
const storeFile = 'store-id'

function readStoreId(dir: string): string {
  mkdirSync(dir, { recursive: true, mode: 0o700 })
  const file = join(dir, storeFile)
  writeOnce(file, newUuid())
  return readFileSync(file, 'utf8')
}

/** Otherwise a power cut could leave a file without a name. */
async function syncDirectory(dir: string) {
  const handle = await open(dir)
  await handle.sync().finally(() => handle.close())
}

const findTime = (path: string) =>
  stat(path).then(
    ({ mtime }) => mtime,
    () => undefined,
  )

function ignoreMissing(error: NodeJS.ErrnoException) {
  if (error.code !== 'ENOENT') throw error
}
