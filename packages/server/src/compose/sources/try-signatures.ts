import { randomUUID } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { stat, writeFile } from 'node:fs/promises'
import { dirname, extname, join } from 'node:path'
import { createInterface } from 'node:readline'
import type { HeldSignature, RefusedFile } from '../../domain/ports/source-store.ts'
import { findReservedMatch, findSignatureName, isReservedName, isTooLong, SourceError } from '../../domain/sources.ts'
import { toReport } from '../../engines/clamav/clamav-engine.ts'
import { makeClamdClient } from '../../engines/clamav/client.ts'
import type { SignatureFile } from '../../engines/clamav/signature-files.ts'
import type { Trial } from '../../engines/clamav/signature-library.ts'
import type { SourceFile } from './collect-files.ts'
import { type Corpus, listHeld, scanCorpus, type TriedFiles } from './trial.ts'

/** clamd names one signature for a file, so that several of them take several rounds. */
const maxRounds = 20

/**
 * Tries ClamAV files in a clamd of their own: files that do not load are refused, and signatures that match a
 * known-good file are taken out of their files.
 */
export async function trySignatures(
  files: SourceFile[],
  { trial, corpus, released }: { trial: Trial; corpus: Corpus; released: string[] },
): Promise<TriedFiles> {
  const held = new Map<string, HeldSignature>()
  const isDropped = (name: string) => isReservedName(name) || held.has(name)
  // clamd names one signature for a file, so a released one would hide others: the trial is without them.
  const isLeftOut = (name: string) => isDropped(name) || released.includes(name)
  const { signal } = corpus
  const unusable = await findUnusable(files, signal)
  const readable = files.filter(({ name }) => !unusable.some(({ file }) => file === name))
  let tried = await dropFromAll(readable, isLeftOut, signal)
  let refused: RefusedFile[] = []
  let paths = corpus.paths
  let scanned = 0
  for (let round = 0; paths.length > 0 && tried.length > 0; round++) {
    if (round === maxRounds) throw new SourceError('More signatures match known-good files than can be held back.')
    const found = await scanWith(tried, trial, { ...corpus, paths })
    if (found === undefined) {
      const isSecondTime = refused.length > 0
      if (!isSecondTime) refused = await findRefused(tried, trial, signal)
      if (isSecondTime || refused.length === 0) throw new SourceError('The files of the source do not load together.')
      tried = tried.filter(({ name }) => !refused.some(({ file }) => file === name))
      continue
    }
    // Fewer signatures match no further file, so only those with an alarm are scanned again.
    paths = found.alarms.map(({ path }) => path)
    scanned = Math.max(scanned, found.scanned)
    if (paths.length === 0) break
    const matches = listHeld(found.alarms)
    const names = await findNames(tried, new Set(matches.map(({ name }) => name)))
    for (const one of matches) {
      if (!names.has(one.name)) throw newUnattributed(one)
      held.set(one.name, one)
    }
    tried = await dropFromAll(tried, isLeftOut, signal)
  }
  const usable = readable.filter(({ name }) => !refused.some(({ file }) => file === name))
  const used = await dropFromAll(usable, isDropped, signal)
  const unused = [...unusable, ...refused]
  return { used, keep: unused.map(({ file }) => file), held: [...held.values()], refused: unused, scanned }
}

/** Finds the files that need no trial to be refused. */
async function findUnusable(files: SourceFile[], signal: AbortSignal): Promise<RefusedFile[]> {
  const refused: RefusedFile[] = []
  for (const { name: file, path } of files) {
    signal.throwIfAborted()
    let signatures = 0
    let isCut = false
    for await (const line of readLines(path)) {
      const name = findSignatureName(file, line)
      if (name !== undefined && !isReservedName(name)) signatures++
      isCut ||= isTooLong(file, line)
    }
    if (isCut) refused.push({ file, reason: 'has a line that is longer than ClamAV reads' })
    else if (signatures === 0) refused.push({ file, reason: 'has no signatures' })
  }
  return refused
}

async function findRefused(files: SourceFile[], trial: Trial, signal: AbortSignal): Promise<RefusedFile[]> {
  const refused: RefusedFile[] = []
  for (const file of files) {
    const reason = await trial.findFault([await toLoadable(file)], signal)
    signal.throwIfAborted()
    if (reason !== undefined) refused.push({ file: file.name, reason })
  }
  return refused
}

/** Scans the corpus with the files. Undefined when clamd does not load them. */
async function scanWith(files: SourceFile[], trial: Trial, corpus: Corpus) {
  let isLoaded = false
  const { signal } = corpus
  const scanAll = async ({ socket }: { socket: string }) => {
    isLoaded = true
    const client = makeClamdClient({ address: { path: socket } })
    try {
      return await scanCorpus(corpus, async (content, path) => {
        const reply = await client.scan(content, { signal })
        const reserved = findReservedMatch(reply)
        if (reserved !== undefined) throw newUnattributed({ name: reserved, file: path })
        // ClamAV gives alarms of reserved names by itself, without a signature.
        return toReport(reply).findings.filter((name) => !isReservedName(name))
      })
    } finally {
      client.close()
    }
  }
  try {
    return await trial.withClamd(await Promise.all(files.map(toLoadable)), scanAll, signal)
  } catch (error) {
    signal.throwIfAborted()
    if (isLoaded) throw error
    return undefined
  }
}

const newUnattributed = ({ name, file }: HeldSignature) =>
  new SourceError(`${name} matches ${file}, and is in no file by that name.`)

/** Copies the files without the signatures whose names `isDropped` is true of. Files without others are left out. */
async function dropFromAll(
  files: SourceFile[],
  isDropped: (name: string) => boolean,
  signal: AbortSignal,
): Promise<SourceFile[]> {
  const copies: SourceFile[] = []
  for (const { name, path } of files) {
    signal.throwIfAborted()
    const copy = join(dirname(path), `${randomUUID()}${extname(path)}`)
    const kept = { signatures: 0 }
    await writeFile(copy, keepLines({ name, path }, isDropped, kept))
    if (kept.signatures > 0) copies.push({ name, path: copy })
  }
  return copies
}

/** latin1 keeps every byte as it is. */
const readLines = (path: string) =>
  createInterface({ input: createReadStream(path, 'latin1'), crlfDelay: Number.POSITIVE_INFINITY })

/** Lines are written together, because a file may have a million of them. */
const pieceCharacters = 64 * 1024

/** Yields the lines to keep, and counts the signatures among them in `kept`. */
async function* keepLines(
  { name: file, path }: SourceFile,
  isDropped: (name: string) => boolean,
  kept: { signatures: number },
) {
  let piece = ''
  for await (const line of readLines(path)) {
    const name = findSignatureName(file, line)
    if (name !== undefined && isDropped(name)) continue
    if (name !== undefined) kept.signatures++
    piece += `${line}\n`
    if (piece.length < pieceCharacters) continue
    yield Buffer.from(piece, 'latin1')
    piece = ''
  }
  if (piece !== '') yield Buffer.from(piece, 'latin1')
}

/** Which of the names are those of signatures in the files. */
async function findNames(files: SourceFile[], wanted: Set<string>): Promise<Set<string>> {
  const found = new Set<string>()
  for (const { name: file, path } of files) {
    for await (const line of readLines(path)) {
      const name = findSignatureName(file, line)
      if (name !== undefined && wanted.has(name)) found.add(name)
    }
  }
  return found
}

async function toLoadable({ name, path }: SourceFile): Promise<SignatureFile> {
  const { size, mtimeMs } = await stat(path)
  return { path, loadedAs: name, bytes: size, changedMs: mtimeMs }
}
