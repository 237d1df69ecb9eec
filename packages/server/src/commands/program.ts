import { Command } from 'commander'
import { version } from '../runtime/version.ts'
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
import { makePlansCommand } from './plans.ts'
import { makeRegionsCommand } from './regions.ts'
import { makeScanCommand } from './scan.ts'
import { makeServeCommand } from './serve.ts'
import { makeSignaturesCommand } from './signatures.ts'
import { makeWebhooksCommand } from './webhooks.ts'

/** Everything an operator can type. */
export function makeProgram(): Command {
  const program = new Command('assay')
    .description('Is it safe? Scans files for malware and images for NSFW content.')
    .version(version)
  for (const command of [
    makeServeCommand(),
    makeScanCommand(),
    makeSignaturesCommand(),
    makeAccountsCommand(),
    makeKeysCommand(),
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
  applyManners(program)
  return program
}

/** Commander hands these down only to commands that it makes itself. */
function applyManners(command: Command) {
  // Throws instead of ending the process: main alone does that.
  command.exitOverride().showHelpAfterError('Add --help to see what can be given.')
  command.commands.forEach(applyManners)
}
