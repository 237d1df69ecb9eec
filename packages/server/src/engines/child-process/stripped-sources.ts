import { spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { accessSync, constants, existsSync, mkdirSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'

/** In the installation, where only users who can change the program can write. */
const installationCache = join(import.meta.dirname, '../../../../../node_modules/.cache/assay')
const stripProgram = fileURLToPath(new URL('strip-types.cjs', import.meta.url))

/** The program that each child loads before its own. */
export const loadProgram = fileURLToPath(new URL('load-stripped.cjs', import.meta.url))

/**
 * Returns a file with the sources below `dirs` as JavaScript, which `loadProgram` reads: Node would remove the types at
 * each start of a child, which takes 200 of the 360 ms of an unpacking process. The first call after a change of the
 * sources writes the file; its name contains their hash. Undefined where the installation cannot be written to.
 */
export function findStrippedSources(name: string, dirs: string[], cacheDir = installationCache): string | undefined {
  const files = dirs.flatMap(listSources)
  const sources = Object.fromEntries(files.map((file) => [pathToFileURL(file).href, readFileSync(file, 'utf8')]))
  const text = JSON.stringify(sources)
  const hash = createHash('sha256').update(process.version).update(text).digest('hex')
  const prefix = name.replaceAll(' ', '-')
  const target = join(cacheDir, `${prefix}-${hash.slice(0, 32)}.stripped`)
  return existsSync(target) || (isWritable(cacheDir) && write(target, prefix, text)) ? target : undefined
}

const listSources = (dir: string): string[] =>
  readdirSync(dir, { recursive: true, encoding: 'utf8' })
    .filter((path) => path.endsWith('.ts'))
    .map((path) => join(dir, path))

function isWritable(cacheDir: string): boolean {
  try {
    mkdirSync(cacheDir, { recursive: true })
    accessSync(cacheDir, constants.W_OK)
    return true
  } catch {
    return false
  }
}

function write(target: string, prefix: string, sources: string): boolean {
  const dir = dirname(target)
  // Removes the files of earlier versions. The children of a service that still uses one remove the types themselves.
  // Another service may be writing the same file at this moment.
  const isEarlier = (file: string) => file.startsWith(`${prefix}-`) && !file.startsWith(basename(target))
  for (const file of readdirSync(dir).filter(isEarlier)) rmSync(join(dir, file), { force: true })
  return spawnSync(process.execPath, ['--no-warnings', stripProgram, target], { input: sources, env: {} }).status === 0
}
