import type { Command } from 'commander'
import type { makeSignatures } from '../compose/signatures.ts'
import { loadConfig } from '../config/load-config.ts'
import { addCommand, makeCommandAudit, newCommand, print, toTable, withStores } from './terminal.ts'

type Signatures = ReturnType<typeof makeSignatures>
type File = ReturnType<Signatures['list']>['files'][number]

const notice = 'A running service loads them within seconds.'

export function makeSignaturesCommand(): Command {
  const signatures = newCommand('signatures', 'manage malware signatures')

  addCommand(signatures, 'list', 'show the signature files in use').action(
    async (_options: unknown, command: Command) => {
      const { files, officialAt } = (await open()).list()
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
      const placed = await change('signatures.import', path, ({ import: run }) => run(path))
      print(command, placed.map(toJson), `${placed.map((file) => file.path).join('\n')}\n${notice}`)
    })

  addCommand(signatures, 'add', 'add your own signatures: .ndb, .hdb, .ldb, .yar')
    .argument('<file>', 'signature file; replaces one of the same name')
    .action(async (path: string, _options: unknown, command: Command) => {
      const placed = await change('signatures.add', path, ({ add }) => add(path))
      print(command, toJson(placed), `${placed.path}\n${notice}`)
    })

  addCommand(signatures, 'remove', 'remove a signature file that was added or imported')
    .argument('<name>', 'name of the file, as signatures list prints it')
    .action(async (name: string, _options: unknown, command: Command) => {
      await change('signatures.remove', name, async ({ remove }) => remove(name))
      print(command, { removed: name }, `${name} is removed. A running service unloads it within seconds.`)
    })
  return signatures
}

/** The stores are opened first: a change that cannot be recorded is not made. */
const change = <T>(action: string, target: string, work: (signatures: Signatures) => Promise<T>): Promise<T> =>
  withStores(async (stores) => {
    const changed = await work(await open())
    await makeCommandAudit(stores)(action, target)
    return changed
  })

/** Imported here, so that other commands start without loading the engines. */
async function open(): Promise<Signatures> {
  const { makeSignatures } = await import('../compose/signatures.ts')
  return makeSignatures(loadConfig(process.env).config)
}

const toJson = ({ path, bytes, changedMs }: File) => ({ path, bytes, changed_at: new Date(changedMs) })
