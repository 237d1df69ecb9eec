import { randomBytes } from 'node:crypto'
import { linkSync, rmSync, writeFileSync } from 'node:fs'
import { dirname } from 'node:path'
import { syncDirectorySync } from './sync-directory.ts'

/**
 * Writes a file that only its owner can read, unless it exists. The file is written under a temporary name and linked,
 * so that of two processes one wins, and no process ever reads a partial file. The file and its name survive a power
 * failure.
 */
export function writeOnce(file: string, text: string) {
  const draft = `${file}.${randomBytes(8).toString('hex')}`
  writeFileSync(draft, text, { mode: 0o600, flag: 'wx', flush: true })
  try {
    linkSync(draft, file)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
  } finally {
    rmSync(draft, { force: true })
  }
  // Also when another process won: it may not have synced the name yet, and the caller relies on the file from now on.
  syncDirectorySync(dirname(file))
}
