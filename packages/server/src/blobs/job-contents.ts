import { mkdirSync, readFileSync } from 'node:fs'
import { open, readdir, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { buffer } from 'node:stream/consumers'
import { v7 as newUuid } from 'uuid'
import type { Content } from '../domain/content/content.ts'
import { headBytes } from '../domain/content/media-type.ts'
import type { ContentWriter, JobContents, KeptContent, LastingContent } from '../domain/ports/content-store.ts'
import { writeOnce } from '../runtime/write-once.ts'
import { makeBlockPool } from './block-pool.ts'
import { makeContentWriter } from './content-writer.ts'
import type { MasterKey } from './master-key.ts'
import { maxSealedBytes, sealBytes, unsealBytes } from './sealed-bytes.ts'
import { createSealedFile, type FileBounds, removeSealedFile, reopenSealedFile } from './sealed-file.ts'
import type { StoredContent } from './spool.ts'

/**
 * Content of background scans on a disk. What is small goes into the row of its job instead, so that thousands can be
 * accepted in a second without a file for each.
 */
export function makeJobContents({
  dir,
  master,
  ...bounds
}: { dir: string; master: MasterKey } & FileBounds): JobContents {
  const pool = makeBlockPool({ blockBytes: maxSealedBytes + 1, maxFree: 256 })
  const toPath = (key: string) => join(dir, key)
  const storeId = `${master.id} ${readStoreId(dir)}`

  return {
    newWriter(): ContentWriter<LastingContent> {
      // Also for what will lie in a row: rows are on a disk, too.
      bounds.room?.requireSome()
      const key = newUuid()
      const createFile = () => createSealedFile(toPath(key), master, bounds)
      const writer = makeContentWriter({ memoryBytes: maxSealedBytes, pool, createFile, memory: bounds.memory })
      return { ...writer, finish: async () => toLasting(await writer.finish(), key) }
    },

    toPlace: (kept) => (kept.at === 'row' ? master.id : storeId),
    places: [master.id, storeId],

    async open(kept, known) {
      if (kept.at === 'row') return openRow(unsealBytes(kept.sealed, master), known)
      const file = await reopenSealedFile(toPath(kept.key), master, known.bytes)
      const head = await buffer(file.read(0, Math.min(headBytes, known.bytes)))
      return { ...known, head, whole: undefined, read: file.read, release: file.close }
    },

    async remove(kept) {
      if (kept.at === 'row') return
      const path = toPath(kept.key)
      const { size } = await stat(path).catch(() => ({ size: 0 }))
      await removeSealedFile(path).catch(ignoreMissing)
      bounds.room?.giveBack(size)
    },

    async listKeys(before) {
      const keys = (await readdir(dir)).filter((name) => name !== storeFile)
      const found = await Promise.all(keys.map(async (key) => ({ key, at: await findTime(toPath(key)) })))
      return found.filter(({ at }) => at !== undefined && at < before).map(({ key }) => key)
    },
  }

  function toLasting(content: Content | StoredContent, key: string): LastingContent {
    return Object.assign(content, {
      async handOver(): Promise<KeptContent> {
        if (!('keep' in content)) return { at: 'row', sealed: sealBytes(content.whole ?? Buffer.alloc(0), master) }
        await content.keep()
        await syncDirectory(dir)
        return { at: 'storage', key }
      },
    })
  }
}

function openRow(whole: Buffer, known: Pick<Content, 'bytes' | 'sha1' | 'sha256'>): Content {
  return {
    ...known,
    head: whole.subarray(0, headBytes),
    whole,
    async *read(start = 0, end) {
      yield whole.subarray(start, end)
    },
    async release() {},
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
