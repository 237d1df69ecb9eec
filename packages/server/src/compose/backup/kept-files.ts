import { readdir } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import type { Config } from '../../config/load-config.ts'

export const masterKeyFile = 'master.key'

/** What else must survive: content of jobs, still encrypted, and the operator's own signatures. Relative to the data directory. */
export async function listKeptFiles(config: Config, withMasterKey: boolean): Promise<string[]> {
  const root = resolve(config.dataDir)
  const folders = ['jobs', 'signatures/own', 'signatures/yara']
  const found = await Promise.all(folders.map((folder) => listFiles(root, folder)))
  return [...(withMasterKey && config.masterKey === undefined ? [masterKeyFile] : []), ...found.flat()]
}

async function listFiles(root: string, folder: string): Promise<string[]> {
  const entries = await readdir(join(root, folder), { withFileTypes: true }).catch(() => [])
  return entries.filter((entry) => entry.isFile()).map(({ name }) => `${folder}/${name}`)
}
