import { randomUUID } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { stat, writeFile } from 'node:fs/promises'
import { dirname, extname, join } from 'node:path'
import { createInterface } from 'node:readline'
import type { HeldSignature, RefusedFile } from '../../domain/ports/source-store.ts'
import { findSignatureName, isReservedName } from '../../domain/sources/signature-text.ts'
import { SourceError } from '../../domain/sources/source-error.ts'
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
  const unusable = await findUnusable(files)
  const readable = files.filter(({ name }) => !unusable.some(({ file }) => file === name))
  let tried = await dropFromAll(readable, isLeftOut)
  let refused: RefusedFile[] = []
  let paths = corpus.paths
  for (let round = 0; paths.length > 0 && tried.length > 0; round++) {
    if (round === maxRounds) throw new SourceError('More signatures match known-good files than can be held back.')
    const alarms = await scanWith(tried, trial, { ...corpus, paths })
    if (alarms === undefined) {
      if (refused.length > 0) throw new SourceError('The files of the source do not load together.')
      refused = await findRefused(tried, trial)
      tried = tried.filter(({ name }) => !refused.some(({ file }) => file === name))
      continue
    }
    // Fewer signatures match no further file, so only those with an alarm are scanned again.
    paths = alarms.map(({ path }) => path)
    if (paths.length === 0) break
    const found = listHeld(alarms)
    const names = await findNames(tried, new Set(found.map(({ name }) => name)))
    for (const one of found) {
      if (!names.has(one.name))
        throw new SourceError(`${one.name} matches ${one.file}, and is in no file by that name.`)
      held.set(one.name, one)
    }
    tried = await dropFromAll(tried, isLeftOut)
  }
  const usable = readable.filter(({ name }) => !refused.some(({ file }) => file === name))
  const used = await dropFromAll(usable, isDropped)
  const unused = [...unusable, ...refused]
  return { used, keep: unused.map(({ file }) => file), held: [...held.values()], refused: unused }
}

/** Finds the files that need no trial to be refused. */
async function findUnusable(files: SourceFile[]): Promise<RefusedFile[]> {
  const refused: RefusedFile[] = []
  for (const { name: file, path } of files) {
    let signatures = 0
    for await (const line of readLines(path)) {
      const name = findSignatureName(file, line)
      if (name !== undefined && !isReservedName(name)) signatures++
    }
    if (signatures === 0) refused.push({ file, reason: 'has no signatures' })
  }
  return refused
}

async function findRefused(files: SourceFile[], trial: Trial): Promise<RefusedFile[]> {
  const refused: RefusedFile[] = []
  for (const file of files) {
    const reason = await trial.findFault([await toLoadable(file)])
    if (reason !== undefined) refused.push({ file: file.name, reason })
  }
  return refused
}

/** Scans the corpus with the files. Undefined when clamd does not load them. */
async function scanWith(files: SourceFile[], trial: Trial, corpus: Corpus) {
  let isLoaded = false
  try {
    return await trial.withClamd(await Promise.all(files.map(toLoadable)), async ({ socket }) => {
      isLoaded = true
      const client = makeClamdClient({ address: { path: socket } })
      try {
        return await scanCorpus(corpus, async (content) => {
          const { findings } = toReport(await client.scan(content, { signal: corpus.signal }))
          // Alarms of ClamAV itself, which need no signature.
          return findings.filter((name) => !isReservedName(name))
        })
      } finally {
        client.close()
      }
    })
  } catch (error) {
    if (isLoaded) throw error
    return undefined
  }
}

/**
 * Copies of the files without the signatures whose names `isDropped` is true of. Files that have no other signatures are
 * left out.
 */
async function dropFromAll(files: SourceFile[], isDropped: (name: string) => boolean): Promise<SourceFile[]> {
  const copies: SourceFile[] = []
  for (const { name, path } of files) {
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
