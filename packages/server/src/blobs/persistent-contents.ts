import { buffer } from 'node:stream/consumers'
import { v7 as newUuid } from 'uuid'
import type { Content } from '../domain/content/content.ts'
import { headBytes } from '../domain/content/media-type.ts'
import type { ContentLocation, ContentWriter, JobContent, JobContents } from '../domain/ports/content-store.ts'
import { makeBlockPool } from './block-pool.ts'
import type { ContentMemory } from './content-memory.ts'
import { makeContentWriter } from './content-writer.ts'
import type { MasterKey } from './master-key.ts'
import { maxSealedBytes, sealBytes, unsealBytes } from './sealed-bytes.ts'
import type { SealedContent, SealedWriter } from './sealed-file.ts'
import type { StoredContent } from './spool.ts'

/** Where content lies that is too large for the row of its job. */
export type PersistentStorage = {
  /** Whoever has this one, too, can open what lies in it. */
  id: string
  /** Throws when there is none, not even for a row. */
  requireRoom?(): void
  create(key: string): Promise<SealedWriter>
  reopen(key: string, bytes: number): Promise<SealedContent>
  /** May be gone already. */
  remove(key: string): Promise<void>
  /** After the last object was closed: until its name would outlive a power cut. */
  syncNames(): Promise<void>
  /** Of what was stored before that time. */
  listKeys(before: Date): Promise<string[]>
}

type Deps = { master: MasterKey; storage: PersistentStorage; memory?: ContentMemory | undefined }

/**
 * Content of background scans. What is small goes into the row of its job, so that thousands can be accepted in a second
 * without an object for each; the rest goes to the storage.
 */
export function makePersistentContents({ master, storage, memory }: Deps): JobContents {
  const pool = makeBlockPool({ blockBytes: maxSealedBytes + 1, maxFree: 256 })
  const storeId = `${master.id} ${storage.id}`

  return {
    newWriter(options = {}): ContentWriter<JobContent> {
      storage.requireRoom?.()
      const key = newUuid()
      const createFile = () => storage.create(key)
      const writer = makeContentWriter({ ...options, memoryBytes: maxSealedBytes, pool, createFile, memory })
      return { ...writer, finish: async () => toJobContent(await writer.finish(), key) }
    },

    toStoreId: (kept) => (kept.at === 'row' ? master.id : storeId),
    storeIds: [master.id, storeId],

    async open(kept, known) {
      if (kept.at === 'row') return openRow(unsealBytes(kept.sealed, master), known)
      const stored = await storage.reopen(kept.key, known.bytes)
      try {
        const head = await buffer(stored.read(0, Math.min(headBytes, known.bytes)))
        return { ...known, head, whole: undefined, read: stored.read, release: stored.close }
      } catch (error) {
        await stored.close()
        throw error
      }
    },

    async remove(kept) {
      if (kept.at === 'storage') await storage.remove(kept.key)
    },

    listKeys: storage.listKeys,
  }

  function toJobContent(content: Content | StoredContent, key: string): JobContent {
    return Object.assign(content, {
      async persist(): Promise<ContentLocation> {
        if (!('keep' in content)) return { at: 'row', sealed: sealBytes(content.whole ?? Buffer.alloc(0), master) }
        await content.keep()
        await storage.syncNames()
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
