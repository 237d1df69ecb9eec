import { lstatSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Service } from './start-service.ts'

/** Lists the files in which the service keeps uploads at this moment. */
export function listContentFiles({ dataDir }: Pick<Service, 'dataDir'>): { path: string; bytes: number }[] {
  return listFiles(join(dataDir, 'content'))
}

/** Lists regular files below a directory, without those that vanish meanwhile. */
function listFiles(dir: string): { path: string; bytes: number; state: string; isSettled: boolean }[] {
  return list(dir).flatMap((name) => {
    const path = join(dir, name)
    const found = lstatSync(path, { throwIfNoEntry: false })
    if (found?.isDirectory()) return listFiles(path)
    if (!found?.isFile()) return []
    const { ino, size, mtimeMs, ctimeMs } = found
    return [
      { path, bytes: size, state: `${ino} ${size} ${mtimeMs} ${ctimeMs}`, isSettled: ctimeMs < Date.now() - settledMs },
    ]
  })
}

/** Lists the files below a directory that contain these bytes. */
export const grepFiles = (dir: string, bytes: Buffer): string[] => newGrep(bytes)(dir)

/** The clock of a file system stands still for up to 10 ms, in which a file changes without a trace. */
const settledMs = 100

/**
 * Returns a function that lists the files below a directory that contain these bytes. The function reads a file again
 * only if the file has changed, so that a test can search a database again and again while a scan runs.
 */
export function newGrep(bytes: Buffer): (dir: string) => string[] {
  /** State of each file without the bytes when it was read. */
  const known = new Map<string, string>()
  return (dir) =>
    listFiles(dir)
      .filter(({ path, state, isSettled }) => {
        if (known.get(path) === state) return false
        try {
          const found = readFileSync(path).includes(bytes)
          if (!found && isSettled) known.set(path, state)
          return found
        } catch {
          return false
        }
      })
      .map(({ path }) => path)
}

function list(dir: string): string[] {
  try {
    return readdirSync(dir)
  } catch {
    return []
  }
}
