import { readFile } from 'node:fs/promises'
import type { Content } from '../../domain/content/content.ts'
import type { ContentStore } from '../../domain/ports/content-store.ts'
import type { HeldSignature, RefusedFile } from '../../domain/ports/source-store.ts'
import { SourceError } from '../../domain/sources/source-error.ts'

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
