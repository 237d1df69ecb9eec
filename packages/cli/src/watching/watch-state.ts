import { createHash } from 'node:crypto'
import { mkdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { toStateDir, writePrivateFile } from '../config.ts'
import type { Kind } from '../scanning/limits.ts'

const saveEveryMs = 5000

/**
 * Remembers which files were scanned, so that they are not scanned and charged again after a restart. It does not store
 * threats and errors, which are reported again after a restart if they persist.
 */
export function openWatchState(env: NodeJS.ProcessEnv, { directory, kind }: { directory: string; kind: Kind }) {
  const name = createHash('sha256').update(`${kind}\n${directory}`).digest('hex').slice(0, 16)
  const path = join(toStateDir(env), `watch-${name}.json`)
  let savedAt = Date.now()
  return {
    path,
    done: readState(path),
    /** Writes at most every 5 seconds; after a kill, the files scanned since the last write are scanned again. */
    save(files: Iterable<[string, string]>, { isLast = false } = {}) {
      if (!isLast && Date.now() - savedAt < saveEveryMs) return
      savedAt = Date.now()
      mkdirSync(toStateDir(env), { recursive: true, mode: 0o700 })
      writePrivateFile(path, `${JSON.stringify({ directory, kind, files: Object.fromEntries(files) })}\n`)
    },
  }
}

export type WatchState = ReturnType<typeof openWatchState>

/** A missing or invalid file gives an empty state, so that all files are scanned again. */
function readState(path: string): Map<string, string> {
  try {
    const { files } = JSON.parse(readFileSync(path, 'utf8')) as { files?: unknown }
    const entries = Object.entries(files ?? {})
    return new Map(entries.filter((entry): entry is [string, string] => typeof entry[1] === 'string'))
  } catch {
    return new Map()
  }
}
