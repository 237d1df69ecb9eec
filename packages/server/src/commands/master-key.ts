import type { Command } from 'commander'
import type { Rotation } from '../compose/rotate-master-key.ts'
import { loadConfig } from '../config/load-config.ts'
import { addCommand, changeStores, newCommand, print } from './terminal.ts'

export function makeMasterKeyCommand(): Command {
  const masterKey = newCommand('master-key', 'manage the key that seals secrets and stored content')

  addCommand(masterKey, 'rotate', 'seal everything with a new master key; stop all nodes first')
    .option('--new-key-file <file>', 'file with the new key, 64 hex digits; needed if ASSAY_MASTER_KEY is set')
    .option('--lost', 'the old key is lost: create new webhook secrets, and remove authenticator apps')
    .action(async ({ newKeyFile, lost }: { newKeyFile?: string; lost?: true }, command: Command) => {
      const { config } = loadConfig(process.env)
      // Imported here, because no other command needs it.
      const { rotateMasterKey } = await import('../compose/rotate-master-key.ts')
      const isLost = lost === true
      const rotation = await changeStores(async (stores, audit) => {
        const rotated = await rotateMasterKey(config, stores, { newKeyFile, isLost })
        await audit('master-key.rotate', rotated.newId, { detail: isLost ? 'the old key is lost' : rotated.oldId })
        return rotated
      })
      print(command, toJson(rotation), toText(rotation, { newKeyFile, isLost }))
    })
  return masterKey
}

const toJson = ({ oldId, newId, accounts, members, jobs, file }: Rotation) => ({
  old_key: oldId,
  new_key: newId,
  accounts,
  authenticator_apps: members,
  jobs,
  file: file ?? null,
})

function toText(rotation: Rotation, { newKeyFile, isLost }: { newKeyFile: string | undefined; isLost: boolean }) {
  const { oldId, newId, accounts, members, jobs, file } = rotation
  const counts = `${accounts} accounts, ${members} authenticator apps and ${jobs} jobs`
  const done = isLost
    ? `The lost master key ${oldId} is replaced by ${newId}: ${accounts} accounts have new webhook secrets, ${members} authenticator apps are removed, and ${jobs} waiting jobs will end in Error:EngineFailed, refunded.`
    : `The master key ${oldId} is replaced by ${newId}: the secrets of ${counts} are sealed again.`
  const next =
    file === undefined
      ? `Set ASSAY_MASTER_KEY to the key in ${newKeyFile} on all nodes, then start them.`
      : `The new key is in ${file}. Copy it to where you keep the key, then start the service.`
  return `${done}\n${next}\nBackups that were made before need the old key.`
}
