import { constants, type Dirent, type Stats } from 'node:fs'
import { access, readdir, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { SourceError } from '../../domain/sources/source-error.ts'

/** Directories of the machine whose files are known to be good. */
const machineDirs = ['/usr/bin', '/usr/lib', '/usr/share/doc']

const megabyte = 1024 * 1024
/** Files of a directory that are taken. The sample is spread over the directory, and the same each time. */
const machineLimits = { listed: 4000, files: 100, bytes: 8 * megabyte, fileBytes: megabyte }
const ownLimits = { listed: 20_000, files: 5000, bytes: 512 * megabyte, fileBytes: 64 * megabyte }

type Limits = typeof machineLimits
type KnownFile = { path: string; bytes: number }

/**
 * Lists a sample of the files of this machine, and those of the operator's directory. Throws when that directory gives
 * no file: the operator counts on its files.
 */
export async function listKnownGood({
  ownDir,
  dirs = machineDirs,
}: {
  ownDir: string | undefined
  dirs?: string[]
}): Promise<KnownFile[]> {
  const samples = await Promise.all(dirs.map((dir) => sampleFiles(dir, machineLimits)))
  const own = ownDir === undefined ? [] : await listOwn(ownDir)
  return [...own, ...samples.flat()]
}

async function listOwn(dir: string): Promise<KnownFile[]> {
  const fault = await readdir(dir).then(
    () => undefined,
    (error: Error) => error.message,
  )
  if (fault !== undefined) throw new SourceError(`ASSAY_KNOWN_GOOD_DIR cannot be read on this node: ${fault}`)
  const files = await sampleFiles(dir, ownLimits)
  if (files.length === 0) {
    throw new SourceError(`ASSAY_KNOWN_GOOD_DIR is ${dir}, which has no file on this node that can be tried.`)
  }
  return files
}

async function sampleFiles(dir: string, { listed: maxListed, files, bytes, fileBytes }: Limits): Promise<KnownFile[]> {
  const listed = await listFiles(dir, maxListed)
  const step = Math.max(1, listed.length / files)
  const sample: KnownFile[] = []
  let total = 0
  for (let at = 0; at < listed.length; at += step) {
    const path = listed[Math.floor(at)] as string
    const found: Stats | undefined = await stat(path).catch(() => undefined)
    if (found === undefined || !found.isFile() || found.size === 0 || found.size > fileBytes) continue
    if (total + found.size > bytes || !(await isReadable(path))) continue
    total += found.size
    sample.push({ path, bytes: found.size })
  }
  return sample
}

/**
 * Lists files, those of the upper directories first. Links are not followed, so that a loop of them does no harm.
 */
async function listFiles(top: string, max: number): Promise<string[]> {
  const listed: string[] = []
  const dirs = [top]
  for (let dir = dirs.shift(); dir !== undefined && listed.length < max; dir = dirs.shift()) {
    const entries: Dirent[] = await readdir(dir, { withFileTypes: true }).catch(() => [])
    for (const entry of entries) {
      if (entry.isDirectory()) dirs.push(join(dir, entry.name))
      else if (entry.isFile()) listed.push(join(dir, entry.name))
    }
  }
  return listed.sort()
}

const isReadable = (path: string) =>
  access(path, constants.R_OK).then(
    () => true,
    () => false,
  )
