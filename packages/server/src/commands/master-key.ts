import type { Command } from 'commander'
import type { Rotation } from '../compose/rotate-master-key.ts'
import { loadConfig } from '../config/load-config.ts'
import { addCommand, makeCommandAudit, newCommand, print, withStores } from './terminal.ts'

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
      const rotation = await withStores((stores) => {
        const note = makeCommandAudit(stores)
        return rotateMasterKey(config, stores, {
          newKeyFile,
          isLost,
          note: ({ oldId, newId }) =>
            note('master-key.rotate', newId, { detail: isLost ? 'the old key is lost' : oldId }),
        })
      })
      print(command, toJson(rotation), toText(rotation, { newKeyFile, isLost }))
    })
  return masterKey
}

const toJson = ({ oldId, newId, accounts, members, jobs, file, oldFile }: Rotation) => ({
  old_key: oldId,
  new_key: newId,
  accounts,
  authenticator_apps: members,
  jobs,
  file: file ?? null,
  old_file: oldFile ?? null,
})

function toText(rotation: Rotation, { newKeyFile, isLost }: { newKeyFile: string | undefined; isLost: boolean }) {
  const { oldId, newId, file, oldFile } = rotation
  const accounts = toCount(rotation.accounts, 'account')
  const apps = toCount(rotation.members, 'authenticator app')
  const done = isLost
    ? `The lost master key ${oldId} is replaced by ${newId}. New webhook secrets: ${accounts}. Removed: ${apps}. Waiting jobs that will end in Error:EngineFailed, refunded: ${rotation.jobs}.`
    : `The master key ${oldId} is replaced by ${newId}: the secrets of ${accounts}, ${apps} and ${toCount(rotation.jobs, 'job')} are sealed again.`
  const next =
    file === undefined
      ? `Set ASSAY_MASTER_KEY to the key in ${newKeyFile} on all nodes, then start them.`
      : `The new key is in ${file}. Copy it to where you keep the key, then start the service.`
  const kept =
    oldFile === undefined
      ? 'Backups that were made before need the old key.'
      : `The old key is kept in ${oldFile}, because backups that were made before need it. Remove the file when you have no such backup.`
  return `${done}\n${next}\n${kept}`
}

const toCount = (count: number, noun: string) => `${count} ${noun}${count === 1 ? '' : 's'}`
