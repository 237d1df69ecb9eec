import { lstatSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Service } from './start-service.ts'

/** Lists the files in which the service keeps uploads at this moment. */
export function listContentFiles({ dataDir }: Pick<Service, 'dataDir'>): { path: string; bytes: number }[] {
  return listFiles(join(dataDir, 'content'))
}

/** Lists regular files below a directory, without those that vanish meanwhile. */
function listFiles(dir: string): { path: string; bytes: number }[] {
  return list(dir).flatMap((name) => {
    const path = join(dir, name)
    const found = lstatSync(path, { throwIfNoEntry: false })
    if (found?.isDirectory()) return listFiles(path)
    return found?.isFile() ? [{ path, bytes: found.size }] : []
  })
}

/** Lists the files below a directory that contain these bytes. */
export function grepFiles(dir: string, bytes: Buffer): string[] {
  return listFiles(dir)
    .map(({ path }) => path)
    .filter((path) => {
      try {
        return readFileSync(path).includes(bytes)
      } catch {
        return false
      }
    })
}

function list(dir: string): string[] {
  try {
    return readdirSync(dir)
  } catch {
    return []
  }
}
