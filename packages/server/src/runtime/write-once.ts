import { randomBytes } from 'node:crypto'
import { linkSync, rmSync, writeFileSync } from 'node:fs'

/**
 * Writes a file for its owner alone, unless it is there. Under another name first, and linked into place whole: of two that
 * start at once one wins, never half a one.
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
}
