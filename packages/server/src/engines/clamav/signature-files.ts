import { createHash } from 'node:crypto'
import { closeSync, constants, lstatSync, openSync, readdirSync, readSync, statSync } from 'node:fs'
import { type FileHandle, mkdir, open, readdir, rename, rm } from 'node:fs/promises'
import { extname, join } from 'node:path'

/**
 * A file that clamd can load. `loadedAs` is its unique name in clamd's directory. `isLink` is true of symbolic links and
 * of files that have another name.
 */
export type SignatureFile = { path: string; loadedAs: string; bytes: number; changedMs: number; isLink?: boolean }

export type SignatureDirs = {
  /** Signatures that Assay ships. */
  shipped: string
  /** ClamAV's own signatures, from the updater or an import. */
  official: string
  /** The operator's signatures, put there by hand. */
  own: string
  /** Copies of the operator's signatures in the database. */
  shared: string
}

const officialKinds = ['.cvd', '.cld', '.cud']
const plainKinds = ['.ndb', '.ldb', '.hdb', '.hsb', '.mdb', '.msb', '.cdb', '.fp', '.sfp', '.ign2', '.yar', '.yara']

export const isOfficialKind = (file: string) => officialKinds.includes(extname(file).toLowerCase())
export const isSignatureKind = (file: string) =>
  isOfficialKind(file) || plainKinds.includes(extname(file).toLowerCase())

export function listSignatureFiles(dirs: SignatureDirs): SignatureFile[] {
  return [
    ...listIn(dirs.shipped, (name) => name),
    // The user of freshclam can write here. A link would make the service read another file, so there are none.
    ...dropOlderVersions(
      listIn(dirs.official, (name) => (isOfficialKind(name) ? name : `fetched-${name}`)).filter(
        ({ isLink }) => !isLink,
      ),
    ),
    ...listIn(dirs.own, (name) => `own-${name}`),
    ...listIn(dirs.shared, (name) => `shared-${name}`),
  ]
}

function listIn(dir: string, toLoadedName: (name: string) => string): SignatureFile[] {
  const names = readNames(dir).filter((name) => !name.startsWith('.') && isSignatureKind(name))
  return names.sort().flatMap((name) => {
    const path = join(dir, name)
    const found = statSync(path, { throwIfNoEntry: false })
    if (found === undefined || !found.isFile()) return []
    const isLink = lstatSync(path, { throwIfNoEntry: false })?.isSymbolicLink() === true || found.nlink > 1
    return { path, loadedAs: toLoadedName(name), bytes: found.size, changedMs: found.mtimeMs, isLink }
  })
}

function readNames(dir: string): string[] {
  try {
    return readdirSync(dir)
  } catch {
    return []
  }
}

/** The updater turns daily.cvd into daily.cld; clamd would load the signatures of both. */
function dropOlderVersions(files: SignatureFile[]): SignatureFile[] {
  const newest = new Map<string, SignatureFile>()
  for (const file of files) {
    const database = isOfficialKind(file.path) ? file.loadedAs.replace(/\.[^.]+$/, '') : file.loadedAs
    const other = newest.get(database)
    if (other === undefined || other.changedMs < file.changedMs) newest.set(database, file)
  }
  return [...newest.values()]
}

/**
 * Makes clamd's directory hold exactly these files. Each file appears whole or not at all. The previous
 * version of a refused file stays, if there is one.
 */
export async function placeSignatureFiles(
  files: SignatureFile[],
  refused: ReadonlySet<string>,
  databaseDir: string,
): Promise<void> {
  await mkdir(databaseDir, { recursive: true, mode: 0o755 })
  const wanted = new Set(files.map(({ loadedAs }) => loadedAs))
  for (const name of await readdir(databaseDir)) if (!wanted.has(name)) await rm(join(databaseDir, name))
  for (const file of files) {
    const target = join(databaseDir, file.loadedAs)
    const copy = statSync(target, { throwIfNoEntry: false })
    // A copy gets the time of its original, by which it is recognized.
    const isCopy = copy?.size === file.bytes && Math.abs(copy.mtimeMs - file.changedMs) < 1
    if (refused.has(file.path)) {
      if (isCopy) await rm(target)
      continue
    }
    if (isCopy) continue
    const draft = join(databaseDir, `.${file.loadedAs}.part`)
    await copySignatureFile(file, draft)
    await rename(draft, target)
  }
}

/** Bytes that one step copies or counts: the event loop serves others in between. */
const chunkBytes = 2 ** 20

/**
 * Copies a file. One that was listed as no link is not followed if a link has taken its place since, and not read if it
 * has become a second name of another file.
 */
async function copySignatureFile({ path, isLink, changedMs }: SignatureFile, target: string) {
  await rm(target, { force: true })
  const source = await open(path, constants.O_RDONLY | constants.O_NONBLOCK | (isLink ? 0 : constants.O_NOFOLLOW))
  try {
    const found = await source.stat()
    if (!found.isFile() || (!isLink && found.nlink > 1)) throw new Error(`${path} is not a file of its own`)
    const copy = await open(target, 'wx', 0o644)
    try {
      for await (const chunk of readChunks(source)) await copy.writeFile(chunk)
      await copy.chmod(0o644)
      await copy.utimes(changedMs / 1000, changedMs / 1000)
    } finally {
      await copy.close()
    }
  } finally {
    await source.close()
  }
}

/** Yields the content of a file, always in the same buffer. */
async function* readChunks(file: FileHandle): AsyncGenerator<Buffer> {
  const chunk = Buffer.allocUnsafe(chunkBytes)
  for (;;) {
    const { bytesRead } = await file.read(chunk, 0, chunkBytes)
    if (bytesRead === 0) return
    yield chunk.subarray(0, bytesRead)
  }
}

/** Lists the files in clamd's directory, with earlier versions of refused files. */
export const listPlacedFiles = (databaseDir: string): SignatureFile[] => listIn(databaseDir, (name) => name)

/**
 * The build time of ClamAV's official databases, or undefined when `main` or `daily` is missing. `daily` decides on the
 * age, as in the version that clamd reports: `main` is rebuilt once in some years.
 */
export function findOfficialDate(files: SignatureFile[]): Date | undefined {
  const [main, daily] = ['main', 'daily'].map((name) => {
    const times = files
      .filter(({ loadedAs }) => [`${name}.cvd`, `${name}.cld`].includes(loadedAs))
      .flatMap(({ path }) => findHeader(path)?.builtMs ?? [])
    return times.length === 0 ? undefined : Math.max(...times)
  })
  return main === undefined || daily === undefined ? undefined : new Date(daily)
}

/** Counts the signatures of a file, because clamd does not tell how many it has loaded. */
export async function countSignatures({ path }: SignatureFile): Promise<number> {
  if (isOfficialKind(path)) return findHeader(path)?.count ?? 0
  const countLines = isRuleFile.test(path) ? countRules : countEntries
  const file = await open(path)
  try {
    let count = 0
    let isAtLineStart = true
    for await (const chunk of readChunks(file)) {
      count += countLines(chunk, isAtLineStart)
      isAtLineStart = chunk.at(-1) === lineFeed
    }
    return count
  } finally {
    await file.close()
  }
}

const isRuleFile = /\.yara?$/i
const lineFeed = 10
const noEntry = new Set(Buffer.from('#\t\n\v\f\r \xa0', 'latin1'))

/** Counts the lines that begin in the chunk, without comments and empty ones. */
function countEntries(chunk: Buffer, isAtLineStart: boolean): number {
  let count = 0
  let at = isAtLineStart ? 0 : chunk.indexOf(lineFeed) + 1
  if (!isAtLineStart && at === 0) return 0
  while (at < chunk.length) {
    if (!noEntry.has(chunk[at] as number)) count++
    const end = chunk.indexOf(lineFeed, at)
    if (end === -1) break
    at = end + 1
  }
  return count
}

/** A rule that begins at the very end of a chunk is not counted: the number is for people. */
const countRules = (chunk: Buffer): number =>
  chunk.toString('latin1').match(/^[^\S\n]*((private|global)\s+)*rule\s/gm)?.length ?? 0

/** `ClamAV-VDB:14 Nov 2026 08-25 +0000:27820:2068042:90:...` */
function findHeader(path: string): { builtMs: number | undefined; count: number } | undefined {
  const header = /^ClamAV-VDB:(\d+ \w+ \d+) (\d\d)-(\d\d) ([+-]\d{4}):\d+:(\d+):/.exec(readStart(path))
  if (header === null) return undefined
  const builtMs = Date.parse(`${header[1]} ${header[2]}:${header[3]} ${header[4]}`)
  return { builtMs: Number.isNaN(builtMs) ? undefined : builtMs, count: Number(header[5]) }
}

function readStart(path: string): string {
  const file = openSync(path, 'r')
  try {
    const start = Buffer.alloc(128)
    return start.toString('latin1', 0, readSync(file, start))
  } finally {
    closeSync(file)
  }
}

/** A digest that changes whenever one of the files does. */
export function toDigest(files: SignatureFile[]): string {
  const digest = createHash('sha256')
  for (const { loadedAs, bytes, changedMs } of files) digest.update(`${loadedAs} ${bytes} ${changedMs}\n`)
  return digest.digest('hex').slice(0, 16)
}
