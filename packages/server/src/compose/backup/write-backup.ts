import { createHash } from 'node:crypto'
import { createReadStream, createWriteStream, existsSync } from 'node:fs'
import { mkdir, mkdtemp, readdir, rename, rm } from 'node:fs/promises'
import { dirname, join, resolve } from 'node:path'
import { Readable, Transform } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { createGzip } from 'node:zlib'
import type { Config } from '../../config/load-config.ts'
import { dumpTables } from '../../database/backup.ts'
import { findRecordedKey } from '../../database/master-key-store.ts'
import { listMigrationsDone } from '../../database/migrate.ts'
import { OperatorMistake } from '../../domain/problem.ts'
import type { Logger } from '../../runtime/logger.ts'
import { version } from '../../runtime/process.ts'
import { syncDirectory } from '../../runtime/sync-directory.ts'
import { openStores, type Stores } from '../stores.ts'
import { listKeptFiles, type Manifest, manifestName, toTableFile } from './manifest.ts'

type Options = {
  withMasterKey: boolean
  signal: AbortSignal
  onTable(name: string): void
  /** Writes to the audit log, if nobody else does; the backup contains the entry. */
  note?(stores: Stores): Promise<void>
}

/**
 * Backs up the whole installation; the service may be running. The backup is written to a temporary directory, which is
 * renamed when all files are complete and synced to the disk.
 */
export async function writeBackup(config: Config, target: string, options: Options, log: Logger): Promise<Manifest> {
  const dir = resolve(target)
  if (existsSync(dir)) throw new OperatorMistake(`${target} already exists. Choose another name, or remove it.`)
  await mkdir(dirname(dir), { recursive: true })
  const draft = await mkdtemp(`${dir}.part-`)
  try {
    const manifest = await fill(config, draft, options, log)
    await saveFile(join(draft, manifestName), Readable.from([JSON.stringify(manifest, undefined, 2)]))
    for (const folder of await listFolders(draft)) await syncDirectory(folder)
    await rename(draft, dir)
    await syncDirectory(dirname(dir))
    return manifest
  } catch (error) {
    await rm(draft, { recursive: true, force: true })
    if (options.signal.aborted) throw new OperatorMistake('Interrupted: no backup was made.')
    throw error
  }
}

async function fill(config: Config, draft: string, { signal, ...options }: Options, log: Logger): Promise<Manifest> {
  const files: Manifest['files'] = {}
  await mkdir(join(draft, 'tables'), { mode: 0o700 })
  const stores = await openStores({ ...config, databaseConnections: 2 }, 'command', log)
  try {
    // Opening the key also finishes a rotation that was interrupted, so that `master.key` is the key of the tables.
    const { master } = await stores.sealing.getKey()
    await options.note?.(stores)
    // Tables come before files: content of a job in the tables is then missing only if the job was completed meanwhile.
    const { takenAt, tables } = await dumpTables(stores.database.pool, async ({ name }, copied) => {
      options.onTable(name)
      const counter = makeLineCounter()
      const path = toTableFile(name)
      files[path] = await saveFile(join(draft, path), copied, [counter.stream, createGzip({ level: 1 })], signal)
      return { rows: counter.count() }
    })
    for (const path of await listKeptFiles(config, options.withMasterKey)) {
      const hash = await copyFile(join(resolve(config.dataDir), path), join(draft, path), signal)
      if (hash !== undefined) files[path] = hash
    }
    await requireUnchangedKey(stores, master.id)
    return {
      format: 1,
      assay: version,
      createdAt: takenAt.toISOString(),
      migrations: await listMigrationsDone(stores.database.pool),
      tables,
      masterKeyId: master.id,
      files,
    }
  } finally {
    await stores.close()
  }
}

/** A rotation that commits meanwhile would leave tables and files that belong to two keys. */
async function requireUnchangedKey({ database }: Stores, id: string) {
  if ((await findRecordedKey(database.pool))?.id === id) return
  throw new OperatorMistake('The master key was rotated during the backup: no backup was made. Run the command again.')
}

/** Copies a file and returns its hash; undefined when the file is gone because its job was completed. */
async function copyFile(from: string, to: string, signal: AbortSignal): Promise<string | undefined> {
  if (!existsSync(from)) return undefined
  await mkdir(dirname(to), { recursive: true, mode: 0o700 })
  return saveFile(to, createReadStream(from), [], signal).catch((error: NodeJS.ErrnoException) => {
    if (error.code !== 'ENOENT') throw error
    return undefined
  })
}

/** Writes a file that only its owner can read, synced to the disk. Returns its SHA-256. */
async function saveFile(
  path: string,
  source: Readable,
  steps: Transform[] = [],
  signal?: AbortSignal,
): Promise<string> {
  const hash = createHash('sha256')
  const hashing = new Transform({
    transform(chunk, _encoding, done) {
      hash.update(chunk)
      done(undefined, chunk)
    },
  })
  const file = createWriteStream(path, { flags: 'wx', mode: 0o600, flush: true })
  await pipeline([source, ...steps, hashing, file], { signal })
  return hash.digest('hex')
}

/** Counts rows: COPY writes one line for each row and escapes line breaks in values. */
function makeLineCounter() {
  let lines = 0
  const stream = new Transform({
    transform(chunk: Buffer, _encoding, done) {
      for (let at = chunk.indexOf(10); at !== -1; at = chunk.indexOf(10, at + 1)) lines++
      done(undefined, chunk)
    },
  })
  return { stream, count: () => lines }
}

async function listFolders(root: string): Promise<string[]> {
  const entries = await readdir(root, { recursive: true, withFileTypes: true })
  return [root, ...entries.filter((entry) => entry.isDirectory()).map(({ parentPath, name }) => join(parentPath, name))]
}
