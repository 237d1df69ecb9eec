import { Command } from 'commander'
import { version } from '../runtime/process.ts'

/** Makers of the commands by name. Each one is imported when it is needed, because all together take long to load. */
const commands: Record<string, () => Promise<Command>> = {
  serve: async () => (await import('./serve.ts')).makeServeCommand(),
  scan: async () => (await import('./scan.ts')).makeScanCommand(),
  signatures: async () => (await import('./signatures.ts')).makeSignaturesCommand(),
  hashes: async () => (await import('./hashes.ts')).makeHashesCommand(),
  sources: async () => (await import('./sources.ts')).makeSourcesCommand(),
  models: async () => (await import('./models.ts')).makeModelsCommand(),
  accounts: async () => (await import('./accounts.ts')).makeAccountsCommand(),
  keys: async () => (await import('./keys.ts')).makeKeysCommand(),
  downloads: async () => (await import('./downloads.ts')).makeDownloadsCommand(),
  operators: async () => (await import('./operators.ts')).makeOperatorsCommand(),
  plans: async () => (await import('./plans.ts')).makePlansCommand(),
  credits: async () => (await import('./accounts.ts')).makeCreditsCommand(),
  jobs: async () => (await import('./jobs.ts')).makeJobsCommand(),
  nodes: async () => (await import('./nodes.ts')).makeNodesCommand(),
  webhooks: async () => (await import('./webhooks.ts')).makeWebhooksCommand(),
  receipts: async () => (await import('./receipts.ts')).makeReceiptsCommand(),
  regions: async () => (await import('./regions.ts')).makeRegionsCommand(),
  audit: async () => (await import('./audit.ts')).makeAuditCommand(),
  config: async () => (await import('./config.ts')).makeConfigCommand(),
  migrate: async () => (await import('./migrate.ts')).makeMigrateCommand(),
  'master-key': async () => (await import('./master-key.ts')).makeMasterKeyCommand(),
  backup: async () => (await import('./backup.ts')).makeBackupCommand(),
  restore: async () => (await import('./backup.ts')).makeRestoreCommand(),
  doctor: async () => (await import('./doctor.ts')).makeDoctorCommand(),
  service: async () => (await import('./service.ts')).makeServiceCommand(),
  health: async () => (await import('./doctor.ts')).makeHealthCommand(),
}

/**
 * The `assay` program with the command that the arguments begin with, or with all operator commands: help and the
 * message about an unknown command list them. The version alone needs no command.
 */
export async function makeProgram([name]: string[] = []): Promise<Command> {
  const program = new Command('assay')
    .description('Scans files for malware and images for NSFW content.')
    .version(version)
  const isKnown = name !== undefined && Object.hasOwn(commands, name)
  const isVersion = name === '--version' || name === '-V'
  for (const [known, make] of Object.entries(commands))
    if (isKnown ? known === name : !isVersion) program.addCommand(await make())
  setErrorHandling(program)
  return program
}

/** Sets this for each command: Commander passes it on only to commands that it creates itself. */
function setErrorHandling(command: Command) {
  // Commander throws instead of ending the process; main.ts sets the exit code.
  command.exitOverride().showHelpAfterError('Run the command with --help to see its options.')
  command.commands.forEach(setErrorHandling)
}
