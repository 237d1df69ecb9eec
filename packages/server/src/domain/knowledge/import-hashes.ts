import type { HashList, HashListStore } from '../ports/hash-list-store.ts'
import { OperatorMistake } from '../problem.ts'
import { ColumnMissing, type HashLine } from './hash-csv.ts'

/** Hashes of one statement. */
const batchSize = 5000
/** A longer line is broken; a file without line ends must not fill the memory. */
const maxLineBytes = 65_536
const maxShownFaults = 20

type BrokenLine = { line: number; reason: string }

export type ImportReport = {
  list: HashList
  /** Hashes that the list had before; undefined for a new list. */
  replaced: number | undefined
  duplicates: number
  /** How many lines were broken, and the first of them. */
  broken: number
  brokenLines: BrokenLine[]
}

type Wanted = Pick<HashList, 'name' | 'verdict' | 'origin' | 'createdBy'>

type Deps = {
  store: Pick<HashListStore, 'beginImport' | 'addHashes' | 'sortHashes' | 'activate' | 'abandon'>
  readLine(line: string): HashLine
  /** Activates the list together with other changes, such as an entry in the audit log. */
  activate?(listId: string): Promise<{ list: HashList; replaced: HashList | undefined }>
  onProgress?(counts: { collected: number; broken: number; bytes: number }): void
  signal?: AbortSignal
}

/**
 * Imports a list of hashes. The list counts only when all of it is there: an import that fails or is killed leaves
 * nothing but rows that the next cleanup deletes. A file without a hash is a mistake.
 */
export async function importHashes(deps: Deps, wanted: Wanted, file: AsyncIterable<Buffer>): Promise<ImportReport> {
  const { store, activate = store.activate, signal } = deps
  const listId = await store.beginImport(wanted)
  try {
    const { collected, broken, brokenLines } = await collect(deps, listId, file)
    if (collected === 0) throw new NoHashes(toEmptyMessage(brokenLines))
    const { duplicates } = await store.sortHashes(listId)
    signal?.throwIfAborted()
    const { list, replaced } = await activate(listId)
    return { list, replaced: replaced?.hashes, duplicates, broken, brokenLines }
  } catch (error) {
    // The cleanup finds the list also when this fails.
    await store.abandon(listId).catch(() => {})
    if (error instanceof ColumnMissing) throw new OperatorMistake(error.message, { cause: error })
    throw error
  }
}

export class NoHashes extends OperatorMistake {}

function toEmptyMessage([first]: BrokenLine[]): string {
  const reason = first === undefined ? 'It has no rows.' : `Line ${first.line}: ${first.reason}.`
  return `The file has no SHA-256 hashes, so nothing was imported. ${reason}`
}

async function collect({ store, readLine, onProgress, signal }: Deps, listId: string, file: AsyncIterable<Buffer>) {
  const counts = { collected: 0, broken: 0, bytes: 0, brokenLines: [] as BrokenLine[] }
  const hashes = Buffer.alloc(batchSize * 32)
  let names: (string | null)[] = []

  const flush = async () => {
    if (names.length === 0) return
    await store.addHashes(listId, { hashes: hashes.subarray(0, names.length * 32), names })
    counts.collected += names.length
    names = []
    onProgress?.(counts)
  }

  const noteBroken = (line: number, reason: string) => {
    counts.broken++
    if (counts.brokenLines.length < maxShownFaults) counts.brokenLines.push({ line, reason })
  }

  const countBytes = (bytes: number) => {
    counts.bytes += bytes
  }

  for await (const lines of readLines(file, countBytes)) {
    signal?.throwIfAborted()
    for (const { number, text } of lines) {
      const row = text === undefined ? { fault: 'the line is longer than 64 KB' } : readLine(text)
      if (row === undefined) continue
      if ('fault' in row) {
        noteBroken(number, row.fault)
        continue
      }
      hashes.write(row.sha256, names.length * 32, 'hex')
      names.push(row.name)
      if (names.length === batchSize) await flush()
    }
  }
  await flush()
  return counts
}

type Line = { number: number; text: string | undefined }

/** The lines of each piece of the file. A line that is too long has no text. */
async function* readLines(file: AsyncIterable<Buffer>, onBytes: (bytes: number) => void): AsyncGenerator<Line[]> {
  let rest: Buffer = Buffer.alloc(0)
  let number = 1
  let isTooLong = false
  for await (const chunk of file) {
    onBytes(chunk.length)
    const bytes = rest.length === 0 ? chunk : Buffer.concat([rest, chunk])
    const lines: Line[] = []
    let from = 0
    for (let end = bytes.indexOf(10); end !== -1; end = bytes.indexOf(10, from)) {
      const isLong = isTooLong || end - from > maxLineBytes
      lines.push({ number, text: isLong ? undefined : bytes.toString('utf8', from, end) })
      isTooLong = false
      number++
      from = end + 1
    }
    // A copy, because the file may read its next piece into the same memory.
    rest = Buffer.from(bytes.subarray(from))
    if (rest.length > maxLineBytes) {
      isTooLong = true
      rest = Buffer.alloc(0)
    }
    yield lines
  }
  if (isTooLong) yield [{ number, text: undefined }]
  else if (rest.length > 0) yield [{ number, text: rest.toString('utf8') }]
}
