import { createHash, hash } from 'node:crypto'
import { mkdirSync, readFileSync } from 'node:fs'
import { open, readdir, stat, unlink } from 'node:fs/promises'
import { join } from 'node:path'
import { buffer } from 'node:stream/consumers'
import { v7 as newUuid } from 'uuid'
import { type Content, type ContentIdentity, headBytes } from '../domain/content/content.ts'
import type {
  ContentLocation,
  ContentOwner,
  ContentWriter,
  JobContent,
  JobContents,
} from '../domain/ports/content-store.ts'
import type { Binding } from '../domain/ports/secret-store.ts'
import { type DigestThreads, makeDigestThreads } from '../runtime/digest-threads.ts'
import { syncDirectory, writeOnce } from '../runtime/files.ts'
import { makeContentWriter } from './content-store.ts'
import { frameBytes, newContentKey } from './frames.ts'
import type { MasterKey } from './master-key.ts'
import { type MemoryBudget, makeBlockPool, makeMemoryBudget } from './memory-content.ts'
import {
  createSealedFile,
  type FileBounds,
  removeSealedFile,
  reopenSealedFile,
  type SealedContent,
  type SealedWriter,
  type StoredContent,
} from './sealed-file.ts'

/** Storage for the content of jobs that is too large for a row of the database. */
export type JobStorage = {
  /** Identifies the storage: processes with the same id can open each other's content. */
  id: string
  /** Throws when there is no space, not even for content in a row. */
  requireSpace?(): void
  create(key: string, contentKey: Buffer): Promise<SealedWriter>
  reopen(key: string, contentKey: Buffer, bytes: number): Promise<SealedContent>
  /** Succeeds also when the object does not exist any more. */
  remove(key: string): Promise<void>
  /** Resolves when the names of closed objects would survive a power cut. */
  syncNames(): Promise<void>
  /** Lists the objects of that age, by the clock of the storage. */
  listKeys(ageMs: number): Promise<string[]>
}

/**
 * Content of background jobs. Content up to 64 KB is sealed into the row of its job, so that thousands of jobs can be
 * accepted in a second without an object for each; larger content goes to the storage, and its sealed key into the row.
 * Both are sealed for one scan of one account, with the length and the hash of the content: content of another row, or
 * another object under the same name, does not open.
 */
export function makeJobContents({
  master,
  storage,
  memory = makeMemoryBudget({ maxBytes: 64 * 1024 * 1024 }),
  threads = makeDigestThreads(),
}: {
  master: MasterKey
  storage: JobStorage
  memory?: MemoryBudget | undefined
  threads?: DigestThreads | undefined
}): JobContents {
  const pool = makeBlockPool({ blockBytes: frameBytes, minFree: 64, maxFree: 256 })
  const storeId = `${master.id} ${storage.id}`

  return {
    newWriter(options = {}): ContentWriter<JobContent> {
      storage.requireSpace?.()
      let object: StoredObject | undefined
      const createFile = () => {
        object ??= { key: newUuid(), contentKey: newContentKey() }
        return storage.create(object.key, object.contentKey)
      }
      const writer = makeContentWriter({ ...options, pool, createFile, memory, threads, keepsLarge: false })
      return { ...writer, finish: async () => toJobContent(await writer.finish(), object) }
    },

    toStoreId: (location) => (location.at === 'row' ? master.id : storeId),
    storeIds: [master.id, storeId],

    async open(location, identity, owner) {
      if (location.at === 'row') {
        return openRow(master.open(location.sealed, toBinding('row', owner, identity)), identity)
      }
      const contentKey = master.open(location.sealedKey, toBinding(location.key, owner, identity))
      const stored = await storage.reopen(location.key, contentKey, identity.bytes)
      try {
        const head = await buffer(stored.read(0, Math.min(headBytes, identity.bytes)))
        const read = checkHash(stored.read, identity)
        return { ...identity, head, isInMemory: false, whole: undefined, read, release: stored.close }
      } catch (error) {
        await stored.close()
        throw error
      }
    },

    async remove(location) {
      if (location.at === 'storage') await storage.remove(location.key)
    },

    listKeys: storage.listKeys,
  }

  function toJobContent(content: Content | StoredContent, object: StoredObject | undefined): JobContent {
    return Object.assign(content, {
      async persist(owner: ContentOwner): Promise<ContentLocation> {
        if (!('keep' in content)) {
          const whole = content.whole ?? Buffer.alloc(0)
          return { at: 'row', sealed: master.seal(whole, toBinding('row', owner, content)) }
        }
        if (object === undefined) throw new Error('Stored content has no key')
        const { key, contentKey } = object
        await content.keep()
        await storage.syncNames()
        return { at: 'storage', key, sealedKey: master.seal(contentKey, toBinding(key, owner, content)) }
      },
    })
  }
}

/** The name of an object of the storage, and the key that its own keys are derived from. */
type StoredObject = { key: string; contentKey: Buffer }

/** Names the scan, account, length and hash that content is sealed for. `name` is the key of its object, or `row`. */
export const toBinding = (
  name: string,
  { accountId, scanId }: ContentOwner,
  { bytes, sha256 }: Pick<ContentIdentity, 'bytes' | 'sha256'>,
): Binding => ['content', name, accountId ?? '', scanId, String(bytes), sha256]

const newWrongHash = () => new Error('Stored content does not have the hash that it was received with')

type Read = SealedContent['read']

/** Compares the hash when content is read from its first to its last byte, before the last bytes are handed out. */
function checkHash(read: Read, { bytes, sha256 }: ContentIdentity): Read {
  let isChecked = false
  return async function* readChecked(start = 0, end = bytes) {
    if (isChecked || start > 0 || end < bytes) return yield* read(start, end)
    const sum = createHash('sha256')
    let seen = 0
    for await (const chunk of read(start, end)) {
      sum.update(chunk)
      seen += chunk.length
      if (seen >= bytes) {
        if (sum.digest('hex') !== sha256) throw newWrongHash()
        isChecked = true
      }
      yield chunk
    }
  }
}

function openRow(whole: Buffer, identity: ContentIdentity): Content {
  if (hash('sha256', whole) !== identity.sha256) throw newWrongHash()
  return {
    ...identity,
    head: whole.subarray(0, headBytes),
    isInMemory: true,
    whole,
    async *read(start = 0, end) {
      yield whole.subarray(start, end)
    },
    async release() {},
  }
}

type DiskDeps = { dir: string; master: MasterKey; threads?: DigestThreads } & FileBounds

/** Content of background jobs in a directory. */
export const makeDiskJobContents = (deps: DiskDeps): JobContents =>
  makeJobContents({ ...deps, storage: makeDiskStorage(deps) })

function makeDiskStorage({ dir, ...bounds }: { dir: string } & FileBounds): JobStorage {
  const toPath = (key: string) => join(dir, key)
  return {
    id: readStoreId(dir),
    requireSpace: () => bounds.disk?.requireSome(),
    create: (key, contentKey) => createSealedFile(toPath(key), contentKey, bounds),
    reopen: (key, contentKey, bytes) => reopenSealedFile(toPath(key), contentKey, bytes),
    async remove(key) {
      const path = toPath(key)
      const { size } = await stat(path).catch(() => ({ size: 0 }))
      await removeSealedFile(path).catch(ignoreMissing)
      bounds.disk?.release(size)
    },
    syncNames: () => syncDirectory(dir),
    async listKeys(ageMs) {
      const nowMs = await readDirectoryMs(dir)
      const keys = (await readdir(dir)).filter((name) => name !== storeFile)
      const found = await Promise.all(keys.map(async (key) => ({ key, ms: await findTimeMs(toPath(key)) })))
      return found.filter(({ ms }) => ms !== undefined && nowMs - ms > ageMs).map(({ key }) => key)
    },
  }
}

/** Holds the id of the directory, so that every process that mounts it knows it by the same id. */
const storeFile = 'store-id'

function readStoreId(dir: string): string {
  mkdirSync(dir, { recursive: true, mode: 0o700 })
  const file = join(dir, storeFile)
  writeOnce(file, newUuid())
  return readFileSync(file, 'utf8')
}

/**
 * Reads the clock by which the files of a directory are dated, from a new file. Machines with other clocks may have
 * mounted the directory as well. A file that a crash leaves behind is an orphan like any other.
 */
async function readDirectoryMs(dir: string): Promise<number> {
  const path = join(dir, newUuid())
  const file = await open(path, 'wx', 0o600)
  try {
    return (await file.stat()).mtimeMs
  } finally {
    await file.close()
    await unlink(path)
  }
}

const findTimeMs = (path: string): Promise<number | undefined> =>
  stat(path).then(
    ({ mtimeMs }) => mtimeMs,
    () => undefined,
  )

function ignoreMissing(error: NodeJS.ErrnoException) {
  if (error.code !== 'ENOENT') throw error
}
