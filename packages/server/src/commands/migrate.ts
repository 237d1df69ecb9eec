import type { Command } from 'commander'
import { migrateDatabase } from '../compose/stores.ts'
import { loadConfig } from '../config/load-config.ts'
import { makeLogger } from '../runtime/logger.ts'
import { newCommand, print } from './terminal.ts'

export function makeMigrateCommand(): Command {
  return newCommand(
    'migrate',
    'migrate the database to this version; the service also does this when it starts',
  ).action(async (_options: unknown, command: Command) => {
    const { config } = loadConfig(process.env)
    const log = makeLogger({ level: 'info', region: config.region, format: config.logFormat })
    const ran = await migrateDatabase(config, log)
    print(command, { ran }, ran.length === 0 ? 'The database is up to date.' : `Applied ${ran.join(', ')}.`)
  })
}
