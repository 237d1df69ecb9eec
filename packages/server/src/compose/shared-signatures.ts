import { randomUUID } from 'node:crypto'
import { createWriteStream } from 'node:fs'
import { mkdir, readdir, rename, rm, stat, utimes } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import type { Config } from '../config/load-config.ts'
import type { SharedFile, SignatureStore } from '../domain/ports/source-store.ts'
import { isYaraFile } from '../engines/yara/rule-files.ts'
import { makeOneAtATime } from '../runtime/closers.ts'
import { hashFile } from '../runtime/files.ts'
import type { Logger } from '../runtime/logger.ts'
import { toSignatureDirs } from './malware.ts'

type Deps = { store: SignatureStore; isOutage(error: unknown): boolean; log: Logger }

/** Short enough that a change reaches every node within 10 s also where notifications do not arrive. */
const pollMs = 3000

/** A draft that is older belongs to a process that was killed. */
const staleDraftMs = 3_600_000

/**
 * Keeps copies of the operator's signature files of the database in the data directory, where the engines of this node
 * notice changes. The copies are complete when this function returns.
 */
export async function openSharedSignatures(config: Config, { store, isOutage, log }: Deps) {
  const copyFiles = makeSignatureCopier(config, store)
  let fault: string | undefined
  let isClosed = false

  const refresh = makeOneAtATime(async () => {
    if (isClosed) return
    try {
      await copyFiles()
      fault = undefined
    } catch (error) {
      // The check of the database reports an outage; the files of this node are still those of before.
      if (isOutage(error)) return
      if (fault === undefined) log.error({ err: error }, 'the signature files of the database cannot be copied')
      fault = 'New signature files cannot be copied to this node; the log says why. The previous ones stay in use.'
    }
  })

  await copyFiles()
  const timer = setInterval(() => void refresh(), pollMs).unref()
  return {
    /** A sentence about why this node has not got the newest files, or undefined. */
    findFault: () => fault,
    refresh,
    async close() {
      clearInterval(timer)
      isClosed = true
      // Waits for a run that has begun.
      await refresh()
    },
  }
}

/** Returns a function that makes the copies of this data directory equal to the files of the database. */
export function makeSignatureCopier(config: Config, store: SignatureStore): () => Promise<void> {
  const { shared, sharedYara } = toSignatureDirs(config)
  /** Hashes of files by their path; a file that an earlier process wrote is hashed once. */
  const hashes = new Map<string, string>()

  async function isCurrent(path: string, { bytes, sha256, changedAt }: SharedFile): Promise<boolean> {
    const found = await stat(path).catch(() => undefined)
    if (found?.size !== bytes || Math.abs(found.mtimeMs - changedAt.getTime()) >= 1) return false
    const hash = hashes.get(path) ?? (await hashFile(path))
    hashes.set(path, hash)
    return hash === sha256
  }

  /** Writes a file under a temporary name first, because the engines watch the directory. */
  async function write(path: string, file: SharedFile) {
    const draft = join(dirname(path), `.${randomUUID()}.part`)
    try {
      await pipeline(Readable.from(store.readContent(file)), createWriteStream(draft, { flags: 'wx', mode: 0o644 }))
      // A file that has been changed meanwhile is left to the next run.
      if ((await hashFile(draft)) !== file.sha256) return
      await utimes(draft, file.changedAt, file.changedAt)
      await rename(draft, path)
      hashes.set(path, file.sha256)
    } finally {
      await rm(draft, { force: true })
    }
  }

  async function copyTo(dir: string, files: SharedFile[]) {
    await mkdir(dir, { recursive: true })
    for (const file of files) {
      const path = join(dir, file.name)
      if (!(await isCurrent(path, file))) await write(path, file)
    }
    const names = new Set(files.map(({ name }) => name))
    for (const name of await readdir(dir)) {
      const path = join(dir, name)
      if (names.has(name) || (await isRecentDraft(path))) continue
      await rm(path, { recursive: true, force: true })
      hashes.delete(path)
    }
  }

  return async () => {
    const files = await store.listFiles()
    const [rules, signatures] = [true, false].map((isYara) => files.filter(({ name }) => isYaraFile(name) === isYara))
    await copyTo(shared, signatures ?? [])
    await copyTo(sharedYara, rules ?? [])
  }
}

/** A command may copy at the same time as the service. */
async function isRecentDraft(path: string): Promise<boolean> {
  if (!basename(path).startsWith('.')) return false
  const found = await stat(path).catch(() => undefined)
  return found !== undefined && found.mtimeMs > Date.now() - staleDraftMs
}
