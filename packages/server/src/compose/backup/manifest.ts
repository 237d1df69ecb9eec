import { readFileSync } from 'node:fs'
import { readdir } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { masterKeyFile } from '../../blobs/master-key.ts'
import type { Config } from '../../config/load-config.ts'
import type { TableShape } from '../../database/backup.ts'
import { OperatorMistake } from '../../domain/problem.ts'
import { hashFile } from '../../runtime/hash-file.ts'

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

export { masterKeyFile }
export const manifestName = 'manifest.json'
export const toTableFile = (name: string) => `tables/${name}.copy.gz`

/**
 * Lists the files a backup copies beside the tables: sealed job content, own signatures and, if asked, the master key.
 */
export async function listKeptFiles(config: Config, withMasterKey: boolean): Promise<string[]> {
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
  const manifest = parse(dir)
  for (const [path, expected] of Object.entries(manifest.files)) {
    const actual = await hashFile(join(dir, path)).catch(() => undefined)
    if (actual === undefined) throw new OperatorMistake(`${path} is missing from the backup. Nothing was changed.`)
    if (actual !== expected) throw new OperatorMistake(`${path} of the backup is damaged. Nothing was changed.`)
  }
  return manifest
}

function parse(dir: string): Manifest {
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
