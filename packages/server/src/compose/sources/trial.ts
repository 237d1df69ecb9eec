import { constants, type Dirent, type Stats } from 'node:fs'
import { access, readdir, readFile, stat, writeFile } from 'node:fs/promises'
import { basename, join } from 'node:path'
import type { Content } from '../../domain/content/content.ts'
import type { ContentStore } from '../../domain/ports/content-store.ts'
import type { HeldSignature, RefusedFile } from '../../domain/ports/source-store.ts'
import { hasPublicRule, hasRule, hideRule, SourceError } from '../../domain/sources.ts'
import { engineOptions } from '../../engines/child-process/engine-options.ts'
import { type LoadedRules, loadRules } from '../../engines/yara/load-rules.ts'
import { scanContent } from '../../engines/yara/yara-engine.ts'
import type { Logger } from '../../runtime/logger.ts'
import type { SourceFile } from './collect-files.ts'

/** The files of a set that may be used, and what is not used of it. `keep` names files whose previous versions stay. */
export type TriedFiles = {
  used: { name: string; path: string }[]
  keep: string[]
  held: HeldSignature[]
  refused: RefusedFile[]
  /** Known-good files that were read and scanned. */
  scanned: number
}

/** The first round finds what matches; further ones check what is left. */
const maxRounds = 3

/**
 * Tries YARA files in a process of their own: files that do not compile are refused, and rules that match a known-good
 * file are made private. A file in which a rule cannot be found for certain is held back whole.
 */
export async function tryRules(
  files: SourceFile[],
  { corpus, released, log }: { corpus: Corpus; released: string[]; log: Logger },
): Promise<TriedFiles & { hiddenRules: number }> {
  const held = new Map<string, HeldSignature>()
  const refused: RefusedFile[] = await findEmpty(files)
  /** The file of each rule that was made private. */
  const hidden: string[] = []
  let used = files.filter(({ name }) => !refused.some(({ file }) => file === name))
  let paths = corpus.paths
  let scanned = 0
  for (let round = 0; paths.length > 0 && used.length > 0; round++) {
    if (round === maxRounds) throw new SourceError('Rules that match known-good files cannot be held back.')
    const { alarms, scanned: count, refused: broken } = await withRules(used, { corpus: { ...corpus, paths }, log })
    scanned = Math.max(scanned, count)
    refused.push(...broken)
    used = used.filter(({ name }) => !broken.some(({ file }) => file === name))
    const found = listHeld(alarms).filter(({ name }) => !released.includes(name))
    for (const rule of found) {
      held.set(rule.name, rule)
      const hiding = await hideIn(used, rule, hidden)
      used = used.filter(({ name }) => !hiding.some(({ file }) => file === name))
      refused.push(...hiding)
    }
    paths = alarms.filter(({ names }) => names.some((name) => !released.includes(name))).map(({ path }) => path)
  }
  // Private rules report nothing by themselves.
  if (!(await hasPublic(used))) used = []
  const hiddenRules = hidden.filter((file) => used.some(({ name }) => name === file)).length
  return { used, keep: refused.map(({ file }) => file), held: [...held.values()], refused, scanned, hiddenRules }
}

async function findEmpty(files: SourceFile[]): Promise<RefusedFile[]> {
  const refused: RefusedFile[] = []
  for (const { name: file, path } of files) {
    if (!hasRule(await readFile(path, 'latin1'))) refused.push({ file, reason: 'has no rules' })
  }
  return refused
}

async function hasPublic(files: SourceFile[]): Promise<boolean> {
  for (const { path } of files) if (hasPublicRule(await readFile(path, 'latin1'))) return true
  return false
}

async function withRules(files: SourceFile[], { corpus, log }: { corpus: Corpus; log: Logger }) {
  const { signal } = corpus
  const options = { ...engineOptions.yara, backend: undefined, processes: 1, reserved: 0, signal, log }
  const listed = await Promise.all(
    files.map(async ({ path }) => ({ path, mark: path, changedAt: (await stat(path)).mtime })),
  )
  const rules = await loadRules(options, listed)
  try {
    const found = await scanCorpus(corpus, async (content, path) => {
      const options = { scanMs: engineOptions.yara.scanMs, work: { signal } }
      const { findings, doubts } = await scanContent(() => rules.pool, content, options)
      if (doubts.length > 0) throw new SourceError(`The rules take too long on the known-good file ${path}.`)
      return findings
    })
    return { ...found, refused: toRefused(files, rules) }
  } finally {
    await rules.pool?.close()
  }
}

/** YARA knows the files by the last part of their paths. */
const toRefused = (files: SourceFile[], { refused }: LoadedRules): RefusedFile[] =>
  refused.map(({ file, reason }) => ({
    file: files.find(({ path }) => path === file || basename(path) === file)?.name ?? file,
    reason,
  }))

/** Hides a rule in every file that has it, and adds them to `hidden`. Returns the files in which it is not possible. */
async function hideIn(
  files: SourceFile[],
  { name, file: knownGood }: HeldSignature,
  hidden: string[],
): Promise<RefusedFile[]> {
  const refused: RefusedFile[] = []
  for (const { name: file, path } of files) {
    const text = await readFile(path, 'latin1')
    if (!new RegExp(`\\brule\\s+${name}\\b`).test(text)) continue
    const changed = hideRule(text, name)
    if (changed === undefined) {
      refused.push({
        file,
        reason: `the rule ${name} matches the known-good file ${knownGood}, and cannot be left out`,
      })
    } else {
      await writeFile(path, changed, 'latin1')
      hidden.push(file)
    }
  }
  return refused
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
