import type { HashList, HashListStore } from '../ports/hash-list-store.ts'
import type { SignatureStore } from '../ports/source-store.ts'
import { OperatorMistake } from '../problem.ts'
import { ColumnMissing, type HashLine, type HashReader, isSha256Text, newHashRows, toName } from './hash-csv.ts'

/** A longer line is broken; a file without line ends must not fill the memory. */
const maxLineBytes = 65_536
const pieceBytes = 65_536
const lineFeed = 10
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

type WantedList = Pick<HashList, 'name' | 'verdict' | 'origin' | 'createdBy'>

type Deps = {
  store: Pick<HashListStore, 'beginImport' | 'addHashes' | 'sortHashes' | 'activate' | 'abandon'>
  reader: HashReader
  /** Activates the list together with other changes, such as an entry in the audit log. */
  activate?(listId: string): Promise<{ list: HashList; replaced: HashList | undefined }>
  onProgress?(counts: { collected: number; broken: number; bytes: number }): void
  signal?: AbortSignal
}

/**
 * Imports a list of hashes. The list counts only when all of it is there: an import that fails or is killed leaves
 * nothing but rows that the next cleanup deletes. A file without a hash is a mistake.
 */
export async function importHashes(deps: Deps, wanted: WantedList, file: AsyncIterable<Buffer>): Promise<ImportReport> {
  const { store, activate = store.activate, signal } = deps
  const listId = await store.beginImport(wanted)
  try {
    const { collected, broken, brokenLines } = await collectRows(deps, listId, file)
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

class NoHashes extends OperatorMistake {}

function toEmptyMessage([first]: BrokenLine[]): string {
  const reason = first === undefined ? 'It has no rows.' : `Line ${first.line}: ${first.reason}.`
  return `The file has no SHA-256 hashes, so nothing was imported. ${reason}`
}

async function collectRows({ store, reader, onProgress, signal }: Deps, listId: string, file: AsyncIterable<Buffer>) {
  const counts = { collected: 0, broken: 0, bytes: 0, brokenLines: [] as BrokenLine[] }
  const rows = newHashRows()
  const lines = newLineSplitter()

  const flush = async () => {
    if (rows.count() === 0) return
    await store.addHashes(listId, rows.get())
    counts.collected += rows.count()
    rows.clear()
    onProgress?.(counts)
  }

  const noteBroken = (line: number, reason: string) => {
    counts.broken++
    if (counts.brokenLines.length < maxShownFaults) counts.brokenLines.push({ line, reason })
  }

  const addLine = ({ bytes, from, end, number, isTooLong }: Line) => {
    const form = isTooLong ? undefined : reader.findForm()
    if (form !== undefined && rows.addPlain(bytes, from, end, form)) return
    const row = isTooLong
      ? { fault: 'the line is longer than 64 KB' }
      : reader.readLine(bytes.toString('utf8', from, end))
    if (row === undefined) return
    if ('fault' in row) noteBroken(number, row.fault)
    else rows.add(row.sha256, row.name)
  }

  for await (const chunk of file) {
    signal?.throwIfAborted()
    counts.bytes += chunk.length
    for (const line of lines.add(chunk)) {
      addLine(line)
      if (rows.isFull()) await flush()
    }
  }
  for (const line of lines.end()) addLine(line)
  await flush()
  return counts
}

/** The bytes of a line. There is one object for all lines, because there are millions of them. */
type Line = { bytes: Buffer; from: number; end: number; number: number; isTooLong: boolean }

/** Finds the lines of a file that arrives in pieces. The memory of a line is used again for later ones. */
function newLineSplitter() {
  const bytes = Buffer.alloc(maxLineBytes + pieceBytes)
  const line: Line = { bytes, from: 0, end: 0, number: 0, isTooLong: false }
  let length = 0
  let isTooLong = false

  const setLine = (from: number, end: number): Line => {
    line.from = from
    line.end = end
    line.number++
    line.isTooLong = isTooLong || end - from > maxLineBytes
    isTooLong = false
    return line
  }

  function* split(): Generator<Line> {
    let from = 0
    for (;;) {
      const end = bytes.indexOf(lineFeed, from)
      if (end === -1 || end >= length) break
      yield setLine(from, end)
      from = end + 1
    }
    bytes.copyWithin(0, from, length)
    length -= from
    if (length <= maxLineBytes) return
    isTooLong = true
    length = 0
  }

  return {
    *add(chunk: Buffer): Generator<Line> {
      for (let at = 0; at < chunk.length; at += pieceBytes) {
        length += chunk.copy(bytes, length, at, at + pieceBytes)
        yield* split()
      }
    },
    /** The last line, if no line feed follows it. */
    *end(): Generator<Line> {
      if (length > 0 || isTooLong) yield setLine(0, length)
    },
  }
}

/**
 * Returns a function that makes the SHA-256 signatures of a file a list of bad hashes, or removes its list when the
 * file is gone, or is not used in scans. Engines find these hashes in scans; the list is for results of before.
 */
export function makeSignatureHashes(deps: {
  signatures: Pick<SignatureStore, 'listFiles' | 'readContent'>
  hashLists: HashListStore
  /** False with a clamd that the operator runs: it does not load the files, so scans do not find their hashes. */
  isUsedInScans: boolean
}) {
  const { signatures, hashLists, isUsedInScans } = deps
  return async (name: string): Promise<void> => {
    const file = (await signatures.listFiles()).find((other) => other.name === name)
    const list = { name, verdict: 'bad', origin: 'signatures', createdBy: 'signatures' } as const
    try {
      if (file === undefined || !isUsedInScans) await hashLists.remove('signatures', name)
      else await importHashes({ store: hashLists, reader: signatureReader }, list, signatures.readContent(file))
    } catch (error) {
      if (!(error instanceof NoHashes)) throw error
      await hashLists.remove('signatures', name)
    }
  }
}

/** ClamAV adds this to the names of signatures that are not its own. */
const unofficialSuffix = '.UNOFFICIAL'

/** Reads lines of ClamAV's hash signatures: `hash:size:name`. Lines with other hashes are no rows. */
export const signatureReader: HashReader = {
  readLine(line): HashLine {
    const [hash = '', , text] = line.trim().split(':')
    if (!isSha256Text(hash)) return undefined
    const name = toName(text)
    return { sha256: hash, name: name === null ? null : `${name}${unofficialSuffix}` }
  },
  findForm: () => ({ separator: ':'.charCodeAt(0), hash: 0, name: 2, suffix: unofficialSuffix }),
}
