import { createHash } from 'node:crypto'
import { createReadStream, createWriteStream, existsSync, readFileSync } from 'node:fs'
import { mkdir, mkdtemp, readdir, rename, rm } from 'node:fs/promises'
import { dirname, join, resolve } from 'node:path'
import { Readable, Transform } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { createGzip } from 'node:zlib'
import { masterKeyFile } from '../../blobs/master-key.ts'
import type { Config } from '../../config/load-config.ts'
import { dumpTables, type TableShape } from '../../database/backup.ts'
import { listMigrationsDone } from '../../database/migrate.ts'
import { findRecordedKey } from '../../database/secret-stores.ts'
import { OperatorMistake } from '../../domain/problem.ts'
import { hashFile, syncDirectory } from '../../runtime/files.ts'
import type { Logger } from '../../runtime/logger.ts'
import { version } from '../../runtime/process.ts'
import { openStores, type Stores } from '../stores.ts'

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

/**
 * The manifest lists the parts of a backup. It is written last, so a directory without one is not a complete backup.
 */
export type Manifest = {
  format: 1
  assay: string
  /** Time of the snapshot, by the clock of the database: changes acknowledged before are part of the backup. */
  createdAt: string
  /** Migrations of the database at the time of the backup: the rows fit that schema. */
  migrations: string[]
  tables: (TableShape & { rows: number })[]
  /** Identifies the key that seals secrets and job content. */
  masterKeyId: string
  /** The SHA-256 of each file, by path. */
  files: Record<string, string>
}

const manifestName = 'manifest.json'
export const hasMasterKey = ({ files }: Manifest): boolean => files[masterKeyFile] !== undefined
export const toTableFile = (name: string) => `tables/${name}.copy.gz`

/**
 * Lists the files a backup copies beside the tables: sealed job content, own signatures and, if asked, the master key.
 */
async function listKeptFiles(config: Config, withMasterKey: boolean): Promise<string[]> {
  const root = resolve(config.dataDir)
  const folders = ['jobs', 'signatures/own', 'signatures/yara']
  const files = await Promise.all(folders.map((folder) => listFiles(root, folder)))
  return [...(withMasterKey && config.masterKey === undefined ? [masterKeyFile] : []), ...files.flat()]
}

async function listFiles(root: string, folder: string): Promise<string[]> {
  const entries = await readdir(join(root, folder), { withFileTypes: true }).catch(() => [])
  return entries.filter((entry) => entry.isFile()).map(({ name }) => `${folder}/${name}`)
}

/**
 * Reads the manifest and compares all files with their hashes, so that a restore never starts with a damaged backup.
 */
export async function readManifest(dir: string): Promise<Manifest> {
  const manifest = parseManifest(dir)
  for (const [path, expected] of Object.entries(manifest.files)) {
    const actual = await hashFile(join(dir, path)).catch(() => undefined)
    if (actual === undefined) throw new OperatorMistake(`${path} is missing from the backup. Nothing was changed.`)
    if (actual !== expected) throw new OperatorMistake(`${path} of the backup is damaged. Nothing was changed.`)
  }
  return manifest
}

function parseManifest(dir: string): Manifest {
  let manifest: Manifest
  try {
    manifest = JSON.parse(readFileSync(join(dir, manifestName), 'utf8'))
  } catch (error) {
    throw new OperatorMistake(`${dir} is not a complete backup: its ${manifestName} is missing or cannot be read.`, {
      cause: error,
    })
  }
  if (manifest.format === 1) return manifest
  throw new OperatorMistake(`${dir} was made by a newer Assay (${manifest.assay}). Restore it with that version.`)
}
