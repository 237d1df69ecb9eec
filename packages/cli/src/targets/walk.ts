import type { Dir } from 'node:fs'
import { opendir } from 'node:fs/promises'
import { type FilePath, joinPath, nameEncoding } from './file-path.ts'
import { type Target, toUnreadable } from './target.ts'

export type WalkOptions = {
  onDirectory?(): void
  /** Whether to skip a directory. */
  isExcluded?(path: FilePath): boolean
}

/** Number of directory entries to read ahead. */
const bufferSize = 128

/**
 * Lists everything below a directory while reading it, with one open directory per level. It does not follow symbolic
 * links, so it stays below the root, lists nothing twice and cannot loop.
 */
export async function* walk(root: FilePath, { onDirectory, isExcluded }: WalkOptions = {}): AsyncGenerator<Target> {
  const levels: { path: FilePath; dir: Dir }[] = []
  const enter = async (path: FilePath) => {
    levels.push({ path, dir: await opendir(path.raw, { encoding: nameEncoding, bufferSize }) })
    onDirectory?.()
  }
  try {
    const unreadable = await enter(root).catch((error) => toUnreadable(root, error))
    if (unreadable !== undefined) yield unreadable
    for (let level = levels.at(-1); level !== undefined; level = levels.at(-1)) {
      const entry = await level.dir.read().catch((error) => toUnreadable(level.path, error))
      if (entry === null || 'kind' in entry) {
        levels.pop()
        await level.dir.close()
        if (entry !== null) yield entry
        continue
      }
      const path = joinPath(level.path, entry.name)
      if (entry.isFile()) yield { kind: 'file', path, isNamed: false }
      else if (!entry.isDirectory()) {
        yield { kind: 'skipped', path, reason: entry.isSymbolicLink() ? 'Symbolic link' : 'Not a regular file' }
      } else if (isExcluded?.(path) !== true) {
        const unreadable = await enter(path).catch((error) => toUnreadable(path, error))
        if (unreadable !== undefined) yield unreadable
      }
    }
  } finally {
    for (const { dir } of levels) await dir.close().catch(() => {})
  }
}
