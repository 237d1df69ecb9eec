import { createReadStream, existsSync, readFileSync } from 'node:fs'
import { copyFile, mkdir } from 'node:fs/promises'
import { dirname, join, resolve } from 'node:path'
import { createGunzip } from 'node:zlib'
import { type MasterKey, makeMasterKey, masterKeyFile, openMasterKey, parseMasterKey } from '../../blobs/master-key.ts'
import type { Config } from '../../config/load-config.ts'
import { countAccounts, loadTables } from '../../database/backup.ts'
import { makeAuditLog } from '../../database/console/audit-log.ts'
import { countMigrationsDone, listMigrations, migrate } from '../../database/migrate.ts'
import type { Database } from '../../database/open-database.ts'
import { OperatorMistake } from '../../domain/problem.ts'
import type { Logger } from '../../runtime/logger.ts'
import { toCommandActor } from '../../runtime/process.ts'
import { openConnection } from '../stores.ts'
import { hasMasterKey, type Manifest, readManifest, toTableFile } from './write-backup.ts'

type Options = {
  /** The master key is lost: the sealed secrets are restored nevertheless; `master-key rotate --lost` replaces them. */
  hasLostKey: boolean
}

/** Restores a backup into an empty installation, whose database may be another than that of the backup. */
export async function restoreBackup(
  config: Config,
  source: string,
  { hasLostKey }: Options,
  log: Logger,
): Promise<Manifest> {
  const dir = resolve(source)
  const manifest = await readManifest(dir)
  requireKnownSchema(manifest)
  if (!hasLostKey) requireSameKey(config, manifest, dir)
  const { database, close } = await openConnection({ ...config, databaseConnections: 2 }, 'service', log)
  try {
    await prepareSchema(database, manifest, log)
    // Files come first: after a failure, files without rows do no harm, but rows whose files are missing do.
    await placeFiles(config, manifest, dir)
    await loadTables(database.pool, manifest.tables, ({ name }) => {
      const file = createReadStream(join(dir, toTableFile(name)))
      return file.pipe(createGunzip())
    })
    await migrate({ ...database, log })
    await makeAuditLog(database).note({ actor: toCommandActor(), action: 'restore', target: dir })
    return manifest
  } finally {
    await close()
  }
}

/** Migrates an empty database to the schema of the backup; newer migrations run after the rows are loaded. */
async function prepareSchema({ pool }: Database, { migrations }: Manifest, log: Logger) {
  if ((await countMigrationsDone(pool)) > 0) {
    if ((await countAccounts(pool)) > 0) {
      throw new OperatorMistake(
        'This database already has accounts. Restore into an empty data directory (ASSAY_DATA_DIR) or an empty database (ASSAY_DATABASE_URL). Nothing was changed.',
      )
    }
    if ((await countMigrationsDone(pool)) !== migrations.length) {
      throw new OperatorMistake(
        'The schema of this database differs from that of the backup. Restore into a database without tables. Nothing was changed.',
      )
    }
    return
  }
  await migrate({ pool, log }, migrations.at(-1))
}

function requireKnownSchema({ migrations, assay }: Manifest) {
  const unknown = migrations.filter((name) => !listMigrations().includes(name))
  if (unknown.length === 0) return
  throw new OperatorMistake(
    `The backup was made by a newer Assay (${assay}; it has ${unknown.join(', ')}). Restore it with that version, or a newer one.`,
  )
}

/** Only the master key that sealed the content of waiting jobs can open it. */
function requireSameKey(config: Config, manifest: Manifest, dir: string) {
  const { masterKeyId } = manifest
  const own = join(resolve(config.dataDir), masterKeyFile)
  if (config.masterKey !== undefined) {
    if (openMasterKey(config.masterKey, config.dataDir).id === masterKeyId) return
    throw new OperatorMistake('ASSAY_MASTER_KEY is not the key of this backup. Nothing was changed.')
  }
  if (existsSync(own)) {
    if (openMasterKey(undefined, config.dataDir).id === masterKeyId) return
    throw new OperatorMistake(`${own} is not the key of this backup. Restore into an empty data directory.`)
  }
  if (hasMasterKey(manifest)) {
    const savedId = readSavedKey(dir).id
    if (savedId === masterKeyId) return
    throw new OperatorMistake(
      `The backup contains the master key ${savedId}, but its secrets are sealed with ${masterKeyId}. Set ASSAY_MASTER_KEY to that key, or copy the key to ${own}. If the key is lost, restore with --lost-master-key. Nothing was changed.`,
    )
  }
  throw new OperatorMistake(
    `The backup does not contain the master key ${masterKeyId}. Set ASSAY_MASTER_KEY to it, or copy the key to ${own}. If the key is lost, restore with --lost-master-key. Nothing was changed.`,
  )
}

function readSavedKey(dir: string): MasterKey {
  const file = join(dir, masterKeyFile)
  return makeMasterKey(parseMasterKey(readFileSync(file, 'utf8'), file))
}

async function placeFiles(config: Config, { files }: Manifest, dir: string) {
  const root = resolve(config.dataDir)
  for (const path of Object.keys(files).filter((path) => !path.startsWith('tables/'))) {
    const target = join(root, path)
    // A key in the data directory was found to be right, or is another that the operator may still need.
    if (path === masterKeyFile && existsSync(target)) continue
    await mkdir(dirname(target), { recursive: true, mode: dirname(path) === 'jobs' ? 0o700 : 0o755 })
    await copyFile(join(dir, path), target)
  }
}
