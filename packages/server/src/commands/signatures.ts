import type { Command } from 'commander'
import type { makeSignatures } from '../compose/signatures.ts'
import type { Stores } from '../compose/stores.ts'
import { loadConfig } from '../config/load-config.ts'
import { addCommand, makeCommandAudit, newCommand, print, toTable, withStores } from './terminal.ts'

type Signatures = ReturnType<typeof makeSignatures>
type File = Awaited<ReturnType<Signatures['list']>>['files'][number]

const notice = 'Every running service loads them within seconds.'

export function makeSignaturesCommand(): Command {
  const signatures = newCommand('signatures', 'manage malware signatures')

  addCommand(signatures, 'list', 'show the signature files in use').action(
    async (_options: unknown, command: Command) => {
      const { files, officialAt } = await withStores(async (stores) => (await open(stores)).list())
      const rows = files.map((file) => [file.path, file.bytes, new Date(file.changedMs).toISOString()])
      const official =
        officialAt === undefined
          ? "ClamAV's official databases, main and daily, are missing."
          : `ClamAV's official databases were built on ${officialAt.toISOString()}.`
      const text = `${toTable(['file', 'bytes', 'changed'], rows)}\n\n${official}`
      print(command, { signatures_at: officialAt ?? null, files: files.map(toJson) }, text)
    },
  )

  addCommand(signatures, 'import', 'import ClamAV databases, for a machine without internet access')
    .argument('<path>', 'a directory such as /var/lib/clamav, or a file')
    .action(async (path: string, _options: unknown, command: Command) => {
      const placed = await change('signatures.import', path, ({ import: run }, note) => run(path, note))
      print(command, placed.map(toJson), `${placed.map((file) => file.path).join('\n')}\n${notice}`)
    })

  addCommand(signatures, 'add', 'add your own signatures: .ndb, .hdb, .ldb, .yar')
    .argument('<file>', 'signature file; replaces one of the same name')
    .action(async (path: string, _options: unknown, command: Command) => {
      const placed = await change('signatures.add', path, ({ add }, note) => add(path, note))
      print(command, placed.map(toJson)[0], `${placed.map((file) => file.path).join('\n')}\n${notice}`)
    })

  addCommand(signatures, 'remove', 'remove a signature file that was added or imported')
    .argument('<name>', 'name of the file, as signatures list prints it')
    .action(async (name: string, _options: unknown, command: Command) => {
      await change('signatures.remove', name, ({ remove }, note) => remove(name, note))
      print(command, { removed: name }, `${name} is removed. Every running service unloads it within seconds.`)
    })
  return signatures
}

/** `work` calls `note` in the transaction of its change. */
const change = <T>(
  action: string,
  target: string,
  work: (signatures: Signatures, note: () => Promise<void>) => Promise<T>,
): Promise<T> => withStores(async (stores) => work(await open(stores), () => makeCommandAudit(stores)(action, target)))

/** Imported here, so that other commands start without loading the engines. */
async function open({ signatures: store, auth }: Stores): Promise<Signatures> {
  const { config } = loadConfig(process.env)
  const { makeSignatures } = await import('../compose/signatures.ts')
  const { makeSignatureCopier } = await import('../compose/shared-signatures.ts')
  return makeSignatures(config, {
    store,
    atomically: auth.audit.atomically,
    copyFiles: makeSignatureCopier(config, store),
  })
}

const toJson = ({ path, bytes, changedMs }: File) => ({ path, bytes, changed_at: new Date(changedMs) })
