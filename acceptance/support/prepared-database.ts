import { execFileSync } from 'node:child_process'
import { existsSync, mkdirSync } from 'node:fs'
import { join } from 'node:path'

/** Names the directory of the embedded database below a data directory. */
const databaseDir = 'postgres'

/**
 * Puts the prepared database of this test run into a new data directory, if there is one. A start that finds it skips
 * what takes about two seconds of processor time: initdb and the migrations. Tests of a first start do not call this.
 */
export function copyPreparedDatabase(dataDir: string) {
  const prepared = process.env.ASSAY_TEST_PREPARED_DATABASE
  if (prepared === undefined || existsSync(join(dataDir, databaseDir))) return
  // The mode that the service gives the directory: the user of the database must reach its own part.
  mkdirSync(dataDir, { recursive: true, mode: 0o711 })
  // Unlike `cpSync`, cp keeps the owner.
  execFileSync('cp', ['-a', '--reflink=auto', join(prepared, databaseDir), dataDir])
}
