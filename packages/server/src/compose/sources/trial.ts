import { constants, type Dirent, type Stats } from 'node:fs'
import { access, readdir, readFile, stat } from 'node:fs/promises'
import { join } from 'node:path'
import type { Content } from '../../domain/content/content.ts'
import type { ContentStore } from '../../domain/ports/content-store.ts'
import type { HeldSignature, RefusedFile } from '../../domain/ports/source-store.ts'
import { SourceError } from '../../domain/sources/verification.ts'

/** The files of a set that may be used, and what is not used of it. `keep` names files whose previous versions stay. */
export type TriedFiles = {
  used: { name: string; path: string }[]
  keep: string[]
  held: HeldSignature[]
  refused: RefusedFile[]
  /** Known-good files that were read and scanned. */
  scanned: number
}

/** Known-good files, and where their content is kept while an engine reads it. */
export type Corpus = { paths: string[]; contents: ContentStore; signal: AbortSignal }

/** A file of the corpus, with the names of the signatures that match it. */
type Alarm = { path: string; names: string[] }

/**
 * Scans the files of the corpus one after the other, so that a trial uses one thread. Files that cannot be read are
 * skipped; when none can, nothing was tried, and that is a failure.
 */
export async function scanCorpus(
  { paths, contents, signal }: Corpus,
  scan: (content: Content, path: string) => Promise<string[]>,
): Promise<{ alarms: Alarm[]; scanned: number }> {
  const alarms: Alarm[] = []
  let scanned = 0
  for (const path of paths) {
    signal.throwIfAborted()
    const bytes = await readFile(path).catch(() => undefined)
    if (bytes === undefined || bytes.length === 0) continue
    const writer = contents.newWriter()
    try {
      await writer.write(bytes)
      const names = await scan(await writer.finish(), path)
      scanned++
      if (names.length > 0) alarms.push({ path, names })
    } finally {
      await writer.abort()
    }
  }
  if (scanned === 0) throw new SourceError('None of the known-good files can be read.')
  return { alarms, scanned }
}

/** The signatures of alarms, each with the first file that it matched. */
export function listHeld(alarms: Alarm[]): HeldSignature[] {
  const files = new Map<string, string>()
  for (const { path, names } of alarms) for (const name of names) if (!files.has(name)) files.set(name, path)
  return [...files].map(([name, file]) => ({ name, file }))
}

/** Directories of the machine whose files are known to be good. */
const machineDirs = ['/usr/bin', '/usr/lib', '/usr/share/doc']

const megabyte = 1024 * 1024
/** Files of a directory that are taken. The sample is spread over the directory, and the same each time. */
const machineLimits = { listed: 4000, files: 100, bytes: 8 * megabyte, fileBytes: megabyte }
const ownLimits = { listed: 20_000, files: 5000, bytes: 512 * megabyte, fileBytes: 64 * megabyte }

type Limits = typeof machineLimits
type KnownFile = { path: string; bytes: number }

/**
 * Lists a sample of the files of this machine, and those of the operator's directory. Throws when that directory gives
 * no file: the operator counts on its files.
 */
export async function listKnownGood({
  ownDir,
  dirs = machineDirs,
}: {
  ownDir: string | undefined
  dirs?: string[]
}): Promise<KnownFile[]> {
  const samples = await Promise.all(dirs.map((dir) => sampleFiles(dir, machineLimits)))
  const own = ownDir === undefined ? [] : await listOwn(ownDir)
  return [...own, ...samples.flat()]
}

async function listOwn(dir: string): Promise<KnownFile[]> {
  const fault = await readdir(dir).then(
    () => undefined,
    (error: Error) => error.message,
  )
  if (fault !== undefined) throw new SourceError(`ASSAY_KNOWN_GOOD_DIR cannot be read on this node: ${fault}`)
  const files = await sampleFiles(dir, ownLimits)
  if (files.length === 0) {
    throw new SourceError(`ASSAY_KNOWN_GOOD_DIR is ${dir}, which has no file on this node that can be tried.`)
  }
  return files
}

async function sampleFiles(dir: string, { listed: maxListed, files, bytes, fileBytes }: Limits): Promise<KnownFile[]> {
  const listed = await listFiles(dir, maxListed)
  const step = Math.max(1, listed.length / files)
  const sample: KnownFile[] = []
  let total = 0
  for (let at = 0; at < listed.length; at += step) {
    const path = listed[Math.floor(at)] as string
    const found: Stats | undefined = await stat(path).catch(() => undefined)
    if (found === undefined || !found.isFile() || found.size === 0 || found.size > fileBytes) continue
    if (total + found.size > bytes || !(await isReadable(path))) continue
    total += found.size
    sample.push({ path, bytes: found.size })
  }
  return sample
}

/**
 * Lists files, those of the upper directories first. Links are not followed, so that a loop of them does no harm.
 */
async function listFiles(top: string, max: number): Promise<string[]> {
  const listed: string[] = []
  const dirs = [top]
  for (let dir = dirs.shift(); dir !== undefined && listed.length < max; dir = dirs.shift()) {
    const entries: Dirent[] = await readdir(dir, { withFileTypes: true }).catch(() => [])
    for (const entry of entries) {
      if (entry.isDirectory()) dirs.push(join(dir, entry.name))
      else if (entry.isFile()) listed.push(join(dir, entry.name))
    }
  }
  return listed.sort()
}

const isReadable = (path: string) =>
  access(path, constants.R_OK).then(
    () => true,
    () => false,
  )
