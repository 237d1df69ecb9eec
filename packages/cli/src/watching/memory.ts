import { createHash } from 'node:crypto'
import { mkdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { toStateDir, writePrivately } from '../config.ts'
import type { Kind } from '../scanning/limits.ts'

const saveEveryMs = 5000

/**
 * Which files were scanned, so that they are not scanned and charged again after a restart. Threats are not remembered:
 * those that are still there are told again, and what could not be read is tried again.
 */
export function openMemory(env: NodeJS.ProcessEnv, { directory, kind }: { directory: string; kind: Kind }) {
  const name = createHash('sha256').update(`${kind}\n${directory}`).digest('hex').slice(0, 16)
  const path = join(toStateDir(env), `watch-${name}.json`)
  let savedAt = Date.now()
  return {
    path,
    done: read(path),
    /** Seldom enough to cost nothing; a run that is killed in between scans a few files again. */
    save(files: Iterable<[string, string]>, { isLast = false } = {}) {
      if (!isLast && Date.now() - savedAt < saveEveryMs) return
      savedAt = Date.now()
      mkdirSync(toStateDir(env), { recursive: true, mode: 0o700 })
      writePrivately(path, `${JSON.stringify({ directory, kind, files: Object.fromEntries(files) })}\n`)
    },
  }
}

/** Nothing of what cannot be read: then all is scanned again. */
function read(path: string): Map<string, string> {
  try {
    const { files } = JSON.parse(readFileSync(path, 'utf8')) as { files?: unknown }
    const entries = Object.entries(files ?? {})
    return new Map(entries.filter((entry): entry is [string, string] => typeof entry[1] === 'string'))
  } catch {
    return new Map()
  }
}
