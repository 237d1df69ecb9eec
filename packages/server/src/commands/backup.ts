import type { Command } from 'commander'
import { restoreBackup } from '../compose/backup/restore-backup.ts'
import { hasMasterKey, type Manifest, readManifest, writeBackup } from '../compose/backup/write-backup.ts'
import { loadConfig } from '../config/load-config.ts'
import { makeLogger } from '../runtime/logger.ts'
import { makeCommandAudit, newCommand, newInterruptSignal, print } from './terminal.ts'

export function makeBackupCommand(): Command {
  return newCommand('backup', 'back up accounts, results, jobs and your own signatures; the service may be running')
    .argument('<directory>', 'directory to create')
    .option('--with-master-key', 'also copy the master key: whoever has the backup can then read the secrets in it')
    .action(async (target: string, { withMasterKey = false }: { withMasterKey?: boolean }, command: Command) => {
      const { config, log } = load()
      const manifest = await writeBackup(
        config,
        target,
        {
          withMasterKey,
          signal: newInterruptSignal(),
          onTable: showOnTerminal,
          note: (stores) => makeCommandAudit(stores)('backup', target),
        },
        log,
      )
      print(command, toJson(target, manifest), `${toText(manifest)}\nSaved to ${target}. ${toKeyNotice(manifest)}`)
    })
}

export function makeRestoreCommand(): Command {
  return newCommand('restore', 'restore a backup into an empty installation')
    .argument('<directory>', 'directory of the backup')
    .option('--check', 'only check that the backup is complete')
    .option('--lost-master-key', 'restore although the master key is lost; run master-key rotate --lost afterwards')
    .action(async (source: string, options: { check?: true; lostMasterKey?: true }, command: Command) => {
      const { config, log } = load()
      const { check, lostMasterKey } = options
      const hasLostKey = lostMasterKey === true
      const manifest = check ? await readManifest(source) : await restoreBackup(config, source, { hasLostKey }, log)
      const outcome = check
        ? `The backup is complete. ${toKeyNotice(manifest)}`
        : hasLostKey
          ? 'Restored. Run: npm run assay -- master-key rotate --lost. Then start the service.'
          : 'Restored. Start the service.'
      print(command, toJson(source, manifest), `${toText(manifest)}\n${outcome}`)
    })
}

function load() {
  const { config } = loadConfig(process.env)
  return { config, log: makeLogger({ level: 'warn', region: config.region, format: config.logFormat }) }
}

/** Tells what a restore needs beside the backup. */
const toKeyNotice = (manifest: Manifest) =>
  hasMasterKey(manifest)
    ? 'It contains the master key, which opens the secrets in it: keep it safe.'
    : `To restore it, you need the master key ${manifest.masterKeyId}, which is not part of it.`

const toJson = (directory: string, manifest: Manifest) => ({
  directory,
  master_key: manifest.masterKeyId,
  contains_master_key: hasMasterKey(manifest),
  created_at: manifest.createdAt,
  version: manifest.assay,
  rows: Object.fromEntries(manifest.tables.map(({ name, rows }) => [name, rows])),
  files: Object.keys(manifest.files).length,
})

const toText = ({ createdAt, assay, tables }: Manifest) => {
  const rows = tables.reduce((sum, table) => sum + table.rows, 0)
  const accounts = tables.find(({ name }) => name === 'accounts')?.rows ?? 0
  return `Backup of ${createdAt}, Assay ${assay}: ${accounts} accounts, ${rows} rows.`
}

const showOnTerminal = (table: string) => {
  if (process.stderr.isTTY) process.stderr.write(`saving ${table}\n`)
}
