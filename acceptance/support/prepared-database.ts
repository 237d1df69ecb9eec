import { execFileSync } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { openEmbedded } from '../../packages/server/src/database/embedded/open-embedded.ts'
import { migrate } from '../../packages/server/src/database/migrate.ts'
import { openDatabase } from '../../packages/server/src/database/open-database.ts'
import { makeLogger } from '../../packages/server/src/runtime/logger.ts'
import { dataRoot } from './data-root.ts'

/** Names the directory of the embedded database below a data directory. */
const databaseDir = 'postgres'

/**
 * Creates an embedded database with the whole schema and without data, which services of this test run copy instead of
 * creating one each. `dir` is the value of ASSAY_TEST_PREPARED_DATABASE.
 */
export async function prepareDatabase(): Promise<{ dir: string; close(): void }> {
  const dir = mkdtempSync(join(dataRoot, 'assay-test-prepared-'))
  const log = makeLogger({ level: 'warn', region: 'test' })
  const embedded = await openEmbedded({ dataDir: dir, as: 'command', log })
  const database = await openDatabase({ url: embedded.url, connections: 2, log })
  await migrate({ ...database, log })
  // A service never creates a database, and without the templates a copy has half as many files and takes a third of the
  // processor time.
  await database.pool.query("update pg_database set datistemplate = false where datname like 'template_'")
  for (const template of ['template0', 'template1']) await database.pool.query(`drop database ${template}`)
  await database.close()
  await embedded.close()
  return { dir, close: () => rmSync(dir, { recursive: true, force: true }) }
}

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
