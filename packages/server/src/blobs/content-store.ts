import { createHash, hash, subtle } from 'node:crypto'
import { mkdir, readdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { v7 as newUuid } from 'uuid'
import type { Content } from '../domain/content/content.ts'
import { headBytes } from '../domain/content/media-type.ts'
import type { ContentStore, ContentWriter } from '../domain/ports/content-store.ts'
import { freeBuffer } from '../runtime/free-buffer.ts'
import { findProcessIdentity, isRunning } from '../runtime/process-identity.ts'
import type { MasterKey } from './master-key.ts'
import { createSealedFile, type SealedFileWriter } from './sealed-file.ts'

/** What is not larger than this is never written anywhere. */
const memoryBytes = 1024 * 1024
const asyncHashBytes = 128 * 1024

/**
 * Content of scans that run in this process. Larger content lies in a directory that carries the name of the process:
 * when the process is gone, so is every reason to keep it, and whoever sweeps next removes it.
 */
export function openContentStore(deps: { dir: string; master: MasterKey }): ContentStore & {
  sweep(): Promise<number>
  close(): Promise<void>
} {
  const identity = findProcessIdentity(process.pid) ?? String(process.pid)
  const own = join(deps.dir, identity)
  let created: Promise<unknown> | undefined

  return {
    newWriter() {
      return makeWriter(async () => {
        created ??= mkdir(own, { recursive: true, mode: 0o700 })
        await created.catch((error) => {
          // The next one tries again: the disk may have room by then.
          created = undefined
          throw error
        })
        return createSealedFile(join(own, newUuid()), deps.master)
      })
    },
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

function makeWriter(createFile: () => Promise<SealedFileWriter>): ContentWriter {
  const chunks: Buffer[] = []
  let bytes = 0
  let spool: ReturnType<typeof makeSpool> | undefined
  let finished: Promise<Content> | undefined

  return {
    write(chunk) {
      bytes += chunk.length
      if (spool !== undefined) return spool.write(chunk)
      chunks.push(chunk)
      if (bytes <= memoryBytes) return undefined
      spool = makeSpool(createFile)
      const kept = Buffer.concat(chunks)
      chunks.length = 0
      return spool.write(kept)
    },
    finish() {
      finished = spool === undefined ? newMemoryContent(chunks) : spool.finish(bytes)
      return finished
    },
    async abort() {
      chunks.length = 0
      const content = await finished?.catch(() => undefined)
      if (content !== undefined) await content.release()
      else await spool?.abort()
    },
  }
}

async function newMemoryContent(chunks: Buffer[]): Promise<Content> {
  const only = chunks.length === 1 ? chunks[0] : undefined
  let whole: Buffer | undefined = only ?? Buffer.concat(chunks)
  const sha256 = await toSha256(whole)
  const getWhole = () => {
    if (whole === undefined) throw new Error('The content was released')
    return whole
  }
  return {
    bytes: whole.length,
    head: whole.subarray(0, headBytes),
    // Seldom wanted: see describe.ts.
    get sha1() {
      return hash('sha1', getWhole())
    },
    sha256,
    get whole() {
      return whole
    },
    async *read(start = 0, end) {
      if (getWhole().length > start) yield getWhole().subarray(start, end)
    },
    async release() {
      whole = undefined
    },
  }
}

/** Of more than a little on another thread: a megabyte would hold up all other requests for almost a millisecond. */
async function toSha256(bytes: Buffer): Promise<string> {
  if (bytes.length < asyncHashBytes) return hash('sha256', bytes)
  return Buffer.from(await subtle.digest('SHA-256', bytes as Uint8Array<ArrayBuffer>)).toString('hex')
}

/** Content that outgrew the memory: hashed as it passes, then encrypted and written. */
function makeSpool(createFile: () => Promise<SealedFileWriter>) {
  const sha1 = createHash('sha1')
  const sha256 = createHash('sha256')
  let head: Buffer | undefined
  let file: SealedFileWriter | undefined
  const opening = createFile().then((opened) => {
    file = opened
  })
  opening.catch(() => {})
  const pass = (chunk: Buffer) => {
    const caughtUp = file?.write(chunk)
    freeBuffer(chunk)
    return caughtUp
  }

  return {
    write(chunk: Buffer): Promise<void> | undefined {
      // The first chunk is what had been kept in memory so far: more than a head.
      head ??= Buffer.from(chunk.subarray(0, headBytes))
      sha1.update(chunk)
      sha256.update(chunk)
      return file === undefined ? opening.then(() => pass(chunk)) : pass(chunk)
    },
    async finish(bytes: number): Promise<Content> {
      await opening
      const sealed = await (file as SealedFileWriter).finish(bytes)
      let removed: Promise<void> | undefined
      return {
        bytes,
        head: head as Buffer,
        sha1: sha1.digest('hex'),
        sha256: sha256.digest('hex'),
        whole: undefined,
        read: sealed.read,
        release() {
          removed ??= sealed.remove()
          return removed
        },
      }
    },
    async abort() {
      await opening.catch(() => {})
      const opened = file
      file = undefined
      await opened?.remove()
    },
  }
}
