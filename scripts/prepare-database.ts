import { mkdtempSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { dataRoot } from '../acceptance/support/data-root.ts'
import { openEmbedded } from '../packages/server/src/database/embedded/open-embedded.ts'
import { migrate } from '../packages/server/src/database/migrate.ts'
import { openDatabase } from '../packages/server/src/database/open-database.ts'
import { makeLogger } from '../packages/server/src/runtime/logger.ts'

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
