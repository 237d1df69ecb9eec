import { readFile } from 'node:fs/promises'
import type { Content } from '../../domain/content/content.ts'
import type { ContentStore } from '../../domain/ports/content-store.ts'
import type { HeldSignature, RefusedFile } from '../../domain/ports/source-store.ts'

/** The files of a set that may be used, and what is not used of it. `keep` names files whose previous versions stay. */
export type TriedFiles = {
  used: { name: string; path: string }[]
  keep: string[]
  held: HeldSignature[]
  refused: RefusedFile[]
}

/** Known-good files, and where their content is kept while an engine reads it. */
export type Corpus = { paths: string[]; contents: ContentStore; signal: AbortSignal }

/** A file of the corpus, with the names of the signatures that match it. */
type Alarm = { path: string; names: string[] }

/** Scans the files of the corpus one after the other, so that a trial uses one thread. Files that have gone are skipped. */
export async function scanCorpus(
  { paths, contents, signal }: Corpus,
  scan: (content: Content, path: string) => Promise<string[]>,
): Promise<Alarm[]> {
  const alarms: Alarm[] = []
  for (const path of paths) {
    signal.throwIfAborted()
    const bytes = await readFile(path).catch(() => undefined)
    if (bytes === undefined || bytes.length === 0) continue
    const writer = contents.newWriter()
    try {
      await writer.write(bytes)
      const names = await scan(await writer.finish(), path)
      if (names.length > 0) alarms.push({ path, names })
    } finally {
      await writer.abort()
    }
  }
  return alarms
}

/** The signatures of alarms, each with the first file that it matched. */
export function listHeld(alarms: Alarm[]): HeldSignature[] {
  const files = new Map<string, string>()
  for (const { path, names } of alarms) for (const name of names) if (!files.has(name)) files.set(name, path)
  return [...files].map(([name, file]) => ({ name, file }))
}
