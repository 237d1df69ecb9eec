import type { Dir } from 'node:fs'
import { opendir } from 'node:fs/promises'
import { joinPlace, nameEncoding, type Place } from './place.ts'
import { type Target, toUnreadable } from './target.ts'

export type WalkOptions = {
  onDirectory?(): void
  /** Directories that are left out. */
  isLeftOut?(place: Place): boolean
}

/** Entries that are read ahead. */
const bufferSize = 128

/**
 * Everything below a directory, as it is read: what is held is one open directory for each level. Symbolic links are not
 * followed, so nothing outside is scanned, nothing twice, and there are no loops.
 */
export async function* walk(root: Place, { onDirectory, isLeftOut }: WalkOptions = {}): AsyncGenerator<Target> {
  const levels: { place: Place; dir: Dir }[] = []
  const enter = async (place: Place) => {
    levels.push({ place, dir: await opendir(place.raw, { encoding: nameEncoding, bufferSize }) })
    onDirectory?.()
  }
  try {
    const fault = await enter(root).catch((error) => toUnreadable(root, error))
    if (fault !== undefined) yield fault
    for (let level = levels.at(-1); level !== undefined; level = levels.at(-1)) {
      const entry = await level.dir.read().catch((error) => toUnreadable(level.place, error))
      if (entry === null || 'kind' in entry) {
        levels.pop()
        await level.dir.close()
        if (entry !== null) yield entry
        continue
      }
      const place = joinPlace(level.place, entry.name)
      if (entry.isFile()) yield { kind: 'file', place, isNamed: false }
      else if (!entry.isDirectory()) {
        yield { kind: 'skipped', place, reason: entry.isSymbolicLink() ? 'Symbolic link' : 'Not a regular file' }
      } else if (isLeftOut?.(place) !== true) {
        const fault = await enter(place).catch((error) => toUnreadable(place, error))
        if (fault !== undefined) yield fault
      }
    }
  } finally {
    for (const { dir } of levels) await dir.close().catch(() => {})
  }
}
