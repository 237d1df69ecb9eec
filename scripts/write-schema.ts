import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { openStores } from '../packages/server/src/compose/stores.ts'
import { loadConfig } from '../packages/server/src/config/load-config.ts'
import { makeLogger } from '../packages/server/src/runtime/logger.ts'
import { describeSchema } from './describe-schema.ts'

/** Writes schema.sql from a database that has just been migrated from nothing. */
const dataDir = mkdtempSync(join(tmpdir(), 'assay-schema-'))
const { config } = loadConfig({ ASSAY_DATA_DIR: dataDir })
const { database, close } = await openStores(config, 'service', makeLogger({ level: 'warn', region: 'x' }))
try {
  writeFileSync(
    new URL('../packages/server/src/database/schema.sql', import.meta.url),
    await describeSchema(database.pool),
  )
} finally {
  await close()
  rmSync(dataDir, { recursive: true, force: true })
}
