import { open, readdir, stat } from 'node:fs/promises'
import { basename, join } from 'node:path'
import type { Refused } from './requests.ts'

export type RuleFile = { file: string; text: Buffer; changedAt: Date }

/** A rule file as it is on disk; `mark` changes whenever the file does. */
export type ListedFile = { path: string; mark: string; changedAt: Date }

const maxFiles = 10_000
const maxFileBytes = 64 * 1024 * 1024

/** Lists the given rule files and those of the directories. A directory that does not exist has none. */
export async function listRuleFiles(rulesDirs: string[], given: string[]): Promise<ListedFile[]> {
  const inDirs = await Promise.all(rulesDirs.map(listPaths))
  const paths = [...given, ...inDirs.flat()].slice(0, maxFiles)
  const listed = await Promise.all(paths.map(findListed))
  return listed.filter((file) => file !== undefined)
}

/** Reads the files. One that cannot be read is refused like one that does not compile; one that is gone is left out. */
export async function readRuleFiles(listed: ListedFile[]): Promise<{ files: RuleFile[]; refused: Refused[] }> {
  const files: RuleFile[] = []
  const refused: Refused[] = []
  const names = new Set<string>()
  for (const { path, changedAt } of listed) {
    // A shipped file and one of the operator may share a name; the second is called by its path.
    const file = names.has(basename(path)) ? path : basename(path)
    names.add(file)
    try {
      files.push({ file, text: await readBounded(path), changedAt })
    } catch (error) {
      if (isMissing(error)) continue
      refused.push({ file, reason: error instanceof Error ? error.message : String(error) })
    }
  }
  return { files, refused }
}

const listPaths = async (dir: string) =>
  (await readNames(dir))
    .filter(isRuleFile)
    .sort()
    .map((name) => join(dir, name))

export const isYaraFile = (name: string) => /\.yara?$/i.test(name)
/** Names with a leading dot are temporary files of editors, or files that are about to be renamed. */
const isRuleFile = (name: string) => isYaraFile(name) && !name.startsWith('.')

async function readNames(dir: string): Promise<string[]> {
  try {
    return await readdir(dir)
  } catch (error) {
    if (isMissing(error)) return []
    throw error
  }
}

async function findListed(path: string): Promise<ListedFile | undefined> {
  try {
    const found = await stat(path)
    if (!found.isFile()) return undefined
    const { mtime, mtimeMs, ctimeMs, size, ino } = found
    return { path, mark: `${path} ${mtimeMs} ${ctimeMs} ${size} ${ino}`, changedAt: mtime }
  } catch (error) {
    if (isMissing(error)) return undefined
    throw error
  }
}

async function readBounded(path: string): Promise<Buffer> {
  const handle = await open(path)
  try {
    const { size } = await handle.stat()
    if (size > maxFileBytes) throw new Error(`it has ${size} bytes; the limit is ${maxFileBytes}`)
    return await handle.readFile()
  } finally {
    await handle.close()
  }
}

const isMissing = (error: unknown) => error instanceof Error && 'code' in error && error.code === 'ENOENT'
