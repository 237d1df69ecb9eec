import type { Command } from 'commander'
import type { Manifest } from '../compose/backup/manifest.ts'
import { readManifest } from '../compose/backup/manifest.ts'
import { restoreBackup } from '../compose/backup/restore-backup.ts'
import { writeBackup } from '../compose/backup/write-backup.ts'
import { loadConfig } from '../config/load-config.ts'
import { makeLogger } from '../runtime/logger.ts'
import { newCommand, newInterruptSignal, print } from './terminal.ts'

export function makeBackupCommand(): Command {
  return newCommand('backup', 'back up accounts, results, jobs and your own signatures; the service may be running')
    .argument('<directory>', 'directory to create')
    .option('--without-master-key', 'leave out the master key, which you must keep elsewhere')
    .action(async (target: string, { withoutMasterKey }: { withoutMasterKey?: true }, command: Command) => {
      const { config, log } = load()
      const manifest = await writeBackup(
        config,
        target,
        { withMasterKey: withoutMasterKey === undefined, signal: newInterruptSignal(), onTable: showOnTerminal },
        log,
      )
      const secrets =
        config.masterKey === undefined && !withoutMasterKey
          ? ' The backup contains the master key and secrets'
          : ' The backup contains secrets'
      print(command, toJson(target, manifest), `${toText(manifest)}\nSaved to ${target}.${secrets}: keep it safe.`)
    })
}

export function makeRestoreCommand(): Command {
  return newCommand('restore', 'restore a backup into an empty installation')
    .argument('<directory>', 'directory of the backup')
    .option('--check', 'only check that the backup is complete')
    .action(async (source: string, { check }: { check?: true }, command: Command) => {
      const { config, log } = load()
      const manifest = check ? await readManifest(source) : await restoreBackup(config, source, log)
      const outcome = check ? 'The backup is complete.' : 'Restored. Start the service.'
      print(command, toJson(source, manifest), `${toText(manifest)}\n${outcome}`)
    })
}

function load() {
  const { config } = loadConfig(process.env)
  return { config, log: makeLogger({ level: 'warn', region: config.region }) }
}

const toJson = (directory: string, { createdAt, assay, tables, files }: Manifest) => ({
  directory,
  created_at: createdAt,
  version: assay,
  rows: Object.fromEntries(tables.map(({ name, rows }) => [name, rows])),
  files: Object.keys(files).length,
})

const toText = ({ createdAt, assay, tables }: Manifest) => {
  const rows = tables.reduce((sum, table) => sum + table.rows, 0)
  const accounts = tables.find(({ name }) => name === 'accounts')?.rows ?? 0
  return `Backup of ${createdAt}, Assay ${assay}: ${accounts} accounts, ${rows} rows.`
}

const showOnTerminal = (table: string) => {
  if (process.stderr.isTTY) process.stderr.write(`saving ${table}\n`)
}
