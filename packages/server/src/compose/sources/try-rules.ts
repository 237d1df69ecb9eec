import { readFile, stat, writeFile } from 'node:fs/promises'
import { basename } from 'node:path'
import type { HeldSignature, RefusedFile } from '../../domain/ports/source-store.ts'
import { hasPublicRule, hasRule, hideRule } from '../../domain/sources/signature-text.ts'
import { SourceError } from '../../domain/sources/verification.ts'
import { engineOptions } from '../../engines/child-process/engine-options.ts'
import { type LoadedRules, loadRules } from '../../engines/yara/load-rules.ts'
import { scanContent } from '../../engines/yara/yara-engine.ts'
import type { Logger } from '../../runtime/logger.ts'
import type { SourceFile } from './collect-files.ts'
import { type Corpus, listHeld, scanCorpus, type TriedFiles } from './trial.ts'

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
  const held: HeldSignature[] = []
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
      const hiding = await hideIn(used, rule, hidden)
      used = used.filter(({ name }) => !hiding.some(({ file }) => file === name))
      refused.push(...hiding)
    }
    held.push(...found)
    paths = alarms.filter(({ names }) => names.some((name) => !released.includes(name))).map(({ path }) => path)
  }
  // Private rules report nothing by themselves.
  if (!(await hasPublic(used))) used = []
  const hiddenRules = hidden.filter((file) => used.some(({ name }) => name === file)).length
  return { used, keep: refused.map(({ file }) => file), held: mergeHeld(held), refused, scanned, hiddenRules }
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

const mergeHeld = (held: HeldSignature[]) => [...new Map(held.map((one) => [one.name, one])).values()]

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
