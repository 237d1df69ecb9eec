import type { Command } from 'commander'
import type { makeSignatures } from '../compose/signatures.ts'
import { loadConfig } from '../config/load-config.ts'
import { addCommand, newCommand, print, toTable } from './terminal.ts'

type Signatures = ReturnType<typeof makeSignatures>
type File = ReturnType<Signatures['list']>['files'][number]

const notice = 'A running service uses them within seconds.'

export function makeSignaturesCommand(): Command {
  const signatures = newCommand('signatures', 'manage what malware is recognised by')

  addCommand(signatures, 'list', 'show the signature files in use').action(
    async (_options: unknown, command: Command) => {
      const { files, releasedAt } = (await open()).list()
      const rows = files.map((file) => [file.path, file.bytes, new Date(file.changedMs).toISOString()])
      const text = `${toTable(['file', 'bytes', 'changed'], rows)}\n\nThe newest came out on ${releasedAt.toISOString()}.`
      print(command, { signatures_at: releasedAt, files: files.map(toJson) }, text)
    },
  )

  addCommand(signatures, 'import', "take over ClamAV's databases, for a machine without the internet")
    .argument('<path>', 'a directory such as /var/lib/clamav, or a file')
    .action(async (path: string, _options: unknown, command: Command) => {
      const placed = await (await open()).import(path)
      print(command, placed.map(toJson), `${placed.map((file) => file.path).join('\n')}\n${notice}`)
    })

  addCommand(signatures, 'add', 'add signatures of your own: .ndb, .hdb, .ldb, .yar')
    .argument('<file>', 'the file; one of the same name is replaced')
    .action(async (path: string, _options: unknown, command: Command) => {
      const placed = await (await open()).add(path)
      print(command, toJson(placed), `${placed.path}\n${notice}`)
    })

  addCommand(signatures, 'remove', 'remove a signature file that was added or imported')
    .argument('<name>', 'its name, as list shows it')
    .action(async (name: string, _options: unknown, command: Command) => {
      ;(await open()).remove(name)
      print(command, { removed: name }, `${name} is removed. A running service forgets it within seconds.`)
    })
  return signatures
}

/** Loaded only here: the other commands start faster without it. */
async function open(): Promise<Signatures> {
  const { makeSignatures } = await import('../compose/signatures.ts')
  return makeSignatures(loadConfig(process.env).config)
}

const toJson = ({ path, bytes, changedMs }: File) => ({ path, bytes, changed_at: new Date(changedMs) })
