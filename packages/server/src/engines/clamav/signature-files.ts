import { createHash } from 'node:crypto'
import {
  closeSync,
  constants,
  fchmodSync,
  fstatSync,
  futimesSync,
  lstatSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  readSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
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
export function placeSignatureFiles(files: SignatureFile[], refused: ReadonlySet<string>, databaseDir: string) {
  mkdirSync(databaseDir, { recursive: true, mode: 0o755 })
  const wanted = new Set(files.map(({ loadedAs }) => loadedAs))
  for (const name of readdirSync(databaseDir)) if (!wanted.has(name)) rmSync(join(databaseDir, name))
  for (const file of files) {
    const target = join(databaseDir, file.loadedAs)
    const copy = statSync(target, { throwIfNoEntry: false })
    // A copy gets the time of its original, by which it is recognized.
    const isCopy = copy?.size === file.bytes && Math.abs(copy.mtimeMs - file.changedMs) < 1
    if (refused.has(file.path)) {
      if (isCopy) rmSync(target)
      continue
    }
    if (isCopy) continue
    const draft = join(databaseDir, `.${file.loadedAs}.part`)
    copySignatureFile(file, draft)
    renameSync(draft, target)
  }
}

const chunkBytes = 4 * 2 ** 20

/**
 * Copies a file. One that was listed as no link is not followed if a link has taken its place since, and not read if it
 * has become a second name of another file.
 */
function copySignatureFile({ path, isLink, changedMs }: SignatureFile, target: string) {
  rmSync(target, { force: true })
  const source = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK | (isLink ? 0 : constants.O_NOFOLLOW))
  try {
    const found = fstatSync(source)
    if (!found.isFile() || (!isLink && found.nlink > 1)) throw new Error(`${path} is not a file of its own`)
    const copy = openSync(target, 'wx', 0o644)
    try {
      const chunk = Buffer.allocUnsafe(chunkBytes)
      for (let bytes = readSync(source, chunk); bytes > 0; bytes = readSync(source, chunk)) {
        writeFileSync(copy, chunk.subarray(0, bytes))
      }
      fchmodSync(copy, 0o644)
      futimesSync(copy, changedMs / 1000, changedMs / 1000)
    } finally {
      closeSync(copy)
    }
  } finally {
    closeSync(source)
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
export function countSignatures({ path }: SignatureFile): number {
  if (isOfficialKind(path)) return findHeader(path)?.count ?? 0
  const isSignature = /\.yara?$/i.test(path) ? /^\s*((private|global)\s+)*rule\s/ : /^[^#\s]/
  return readFileSync(path, 'latin1')
    .split('\n')
    .filter((line) => isSignature.test(line)).length
}

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
