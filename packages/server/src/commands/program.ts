import { Command } from 'commander'
import { version } from '../runtime/process.ts'
import { makeAccountsCommand } from './accounts.ts'
import { makeBackupCommand, makeRestoreCommand } from './backup.ts'
import { makeConfigCommand } from './config.ts'
import { makeCreditsCommand } from './credits.ts'
import { makeDoctorCommand } from './doctor.ts'
import { makeHealthCommand } from './health.ts'
import { makeJobsCommand } from './jobs.ts'
import { makeKeysCommand } from './keys.ts'
import { makeMigrateCommand } from './migrate.ts'
import { makeNodesCommand } from './nodes.ts'
import { makeOperatorsCommand } from './operators.ts'
import { makePlansCommand } from './plans.ts'
import { makeRegionsCommand } from './regions.ts'
import { makeScanCommand } from './scan.ts'
import { makeServeCommand } from './serve.ts'
import { makeSignaturesCommand } from './signatures.ts'
import { makeWebhooksCommand } from './webhooks.ts'

/** The `assay` program with all operator commands. */
export function makeProgram(): Command {
  const program = new Command('assay')
    .description('Scans files for malware and images for NSFW content.')
    .version(version)
  for (const command of [
    makeServeCommand(),
    makeScanCommand(),
    makeSignaturesCommand(),
    makeAccountsCommand(),
    makeKeysCommand(),
    makeOperatorsCommand(),
    makePlansCommand(),
    makeCreditsCommand(),
    makeJobsCommand(),
    makeNodesCommand(),
    makeWebhooksCommand(),
    makeRegionsCommand(),
    makeConfigCommand(),
    makeMigrateCommand(),
    makeBackupCommand(),
    makeRestoreCommand(),
    makeDoctorCommand(),
    makeHealthCommand(),
  ]) {
    program.addCommand(command)
  }
  setErrorHandling(program)
  return program
}

/** Sets this for each command: Commander passes it on only to commands that it creates itself. */
function setErrorHandling(command: Command) {
  // Commander throws instead of ending the process; main.ts sets the exit code.
  command.exitOverride().showHelpAfterError('Run the command with --help to see its options.')
  command.commands.forEach(setErrorHandling)
}
