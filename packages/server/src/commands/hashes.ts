import { type FileHandle, open } from 'node:fs/promises'
import { type Command, InvalidArgumentError, Option } from 'commander'
import { makeHashReader } from '../domain/knowledge/hash-csv.ts'
import { type ImportReport, importHashes } from '../domain/knowledge/import-hashes.ts'
import type { HashList, HashVerdict, KnownHash } from '../domain/ports/hash-list-store.ts'
import { OperatorMistake } from '../domain/problem.ts'
import { toCommandActor } from '../runtime/process.ts'
import { toPrintable } from '../runtime/text-lines.ts'
import { requireFound } from './options.ts'
import {
  addCommand,
  changeStores,
  makeCommandAudit,
  newCommand,
  newInterruptSignal,
  print,
  toCard,
  toTable,
  withStores,
} from './terminal.ts'

type ImportOptions = { list: string; verdict: HashVerdict; hashColumn?: string; nameColumn?: string }

const progressMs = 500

export function makeHashesCommand(): Command {
  const hashes = newCommand('hashes', 'manage lists of known SHA-256 hashes')

  addCommand(hashes, 'import', 'import a list of hashes as CSV, in place of one of the same name')
    .argument('<file>', 'CSV file with one hash in each row, or - for standard input')
    .requiredOption('--list <name>', 'name of the list', readListName)
    .addOption(
      new Option('--verdict <verdict>', 'verdict on these hashes').choices(['bad', 'good']).makeOptionMandatory(),
    )
    .option('--hash-column <column>', 'column of the hash: its name in the header, or its number', readColumn)
    .option('--name-column <column>', 'column of the name that signals show; without it they show the list', readColumn)
    .action(async (path: string, options: ImportOptions, command: Command) => {
      const report = await runImport(path, options)
      print(command, toReportJson(report), toReportText(report))
    })

  addCommand(hashes, 'list', 'show the lists').action(async (_options: unknown, command: Command) => {
    const lists = await withStores((stores) => stores.hashLists.listActive())
    const rows = lists.map((list) => [
      list.name,
      list.verdict,
      toOrigin(list),
      list.hashes,
      list.activatedAt.toISOString(),
      list.createdBy,
    ])
    print(command, lists.map(toJson), toTable(['list', 'verdict', 'from', 'hashes', 'imported', 'by'], rows))
  })

  addCommand(hashes, 'remove', 'remove a list; results that it decided are revised')
    .argument('<name>', 'name of the list')
    .action(async (name: string, _options: unknown, command: Command) => {
      const isRemoved = await changeStores(async ({ hashLists }, audit) => {
        const removed = await hashLists.remove('import', name)
        if (removed) await audit('hashes.remove', name)
        return removed
      })
      requireFound(isRemoved ? name : undefined, `list ${name}`)
      print(command, { removed: name }, `${name} is removed. Scans no longer use it.`)
    })

  addCommand(hashes, 'find', 'show the lists that a hash is in')
    .argument('<sha256>', 'SHA-256 in hexadecimal digits', readHash)
    .action(async (sha256: string, _options: unknown, command: Command) => {
      const found = await withStores((stores) => stores.hashLists.listMatches(sha256))
      const rows = found.map(({ list, verdict, name }) => [list, verdict, name])
      print(command, found satisfies KnownHash[], toTable(['list', 'verdict', 'name'], rows))
    })
  return hashes
}

function runImport(path: string, { list, verdict, hashColumn, nameColumn }: ImportOptions): Promise<ImportReport> {
  const signal = newInterruptSignal()
  if (path === '-') signal.addEventListener('abort', () => process.stdin.destroy(signal.reason as Error))
  const file = path === '-' ? process.stdin : readFile(path)
  const progress = newProgress()
  return withStores(async (stores) => {
    const { hashLists: store, auth } = stores
    const audit = makeCommandAudit(stores)
    const activate = (listId: string) =>
      auth.audit.atomically(async () => {
        const activated = await store.activate(listId)
        const detail = `${activated.list.hashes} hashes, ${verdict}`
        await audit('hashes.import', list, { detail })
        return activated
      })
    const wanted = {
      name: list,
      verdict,
      origin: 'import' as const,
      createdBy: toCommandActor(),
    }
    const reader = makeHashReader({ hash: hashColumn, name: nameColumn })
    return importHashes({ store, reader, activate, onProgress: progress.show, signal }, wanted, file)
  })
    .catch((error: unknown) => throwExplained(error, path, signal))
    .finally(progress.end)
}

const pieceBytes = 65_536

/** Reads a file into the same memory again and again: new memory for each piece would add up to 200 MB. */
async function* readFile(path: string): AsyncGenerator<Buffer> {
  const buffer = Buffer.alloc(pieceBytes)
  const file: FileHandle = await open(path)
  try {
    for (;;) {
      const { bytesRead } = await file.read(buffer, 0, pieceBytes)
      if (bytesRead === 0) return
      yield buffer.subarray(0, bytesRead)
    }
  } finally {
    await file.close()
  }
}

function throwExplained(error: unknown, path: string, signal: AbortSignal): never {
  if (signal.aborted) throw new OperatorMistake('The import was interrupted. Nothing was imported.', { cause: error })
  const { code, message } = error as NodeJS.ErrnoException
  if (code === 'ENOENT' || code === 'EACCES' || code === 'EISDIR') {
    throw new OperatorMistake(`${path} cannot be read: ${message}.`, { cause: error })
  }
  throw error
}

/** Shows one line on a terminal, and nothing elsewhere. */
function newProgress() {
  const { stderr } = process
  let last = 0
  return {
    show({ collected, broken, bytes }: { collected: number; broken: number; bytes: number }) {
      if (!stderr.isTTY || performance.now() - last < progressMs) return
      last = performance.now()
      const megabytes = (bytes / 1_000_000).toFixed(0)
      stderr.write(`\r${collected} hashes, ${broken} broken rows, ${megabytes} MB read\x1b[K`)
    },
    end() {
      if (last > 0) stderr.write('\r\x1b[K')
    },
  }
}

function readListName(text: string): string {
  if (/^[\p{L}\p{N}][\p{L}\p{N} ._-]{0,99}$/u.test(text)) return text
  throw new InvalidArgumentError('Enter up to 100 letters, digits, spaces, dots, hyphens and underscores.')
}

function readColumn(text: string): string {
  if (text.trim() === '') throw new InvalidArgumentError('Enter the name of a column, or its number.')
  return text.trim()
}

function readHash(text: string): string {
  if (!/^[0-9a-f]{64}$/i.test(text)) throw new InvalidArgumentError('Enter a SHA-256: 64 hexadecimal digits.')
  return text.toLowerCase()
}

const toOrigin = ({ origin }: HashList) => (origin === 'import' ? 'import' : 'signature file')

const toJson = (list: HashList) => ({
  list: list.name,
  verdict: list.verdict,
  origin: list.origin,
  hashes: list.hashes,
  imported_at: list.activatedAt,
  imported_by: list.createdBy,
})

const toReportJson = ({ list, replaced, duplicates, broken, brokenLines }: ImportReport) => ({
  ...toJson(list),
  replaced: replaced ?? null,
  duplicates,
  broken,
  broken_rows: brokenLines,
})

function toReportText({ list, replaced, duplicates, broken, brokenLines }: ImportReport): string {
  const card = toCard({
    list: list.name,
    verdict: list.verdict,
    hashes: list.hashes,
    replaced: replaced === undefined ? 'no list' : `${replaced} hashes`,
    'duplicate rows': duplicates,
    'broken rows': broken,
  })
  const lines = brokenLines.map(({ line, reason }) => `line ${line}: ${toPrintable(reason)}`)
  const more = broken > brokenLines.length ? [`and ${broken - brokenLines.length} more`] : []
  return [card, ...lines, ...more].join('\n')
}
