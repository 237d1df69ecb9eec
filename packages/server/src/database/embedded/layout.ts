import { createHash } from 'node:crypto'
import { chmodSync, chownSync, existsSync, lstatSync, mkdirSync, realpathSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join, resolve } from 'node:path'

export type Layout = { rootDir: string; clusterDir: string; socketDir: string; libraryLinks: string; logFile: string }

/** The longest socket path that the kernel accepts, in bytes, including the final NUL. */
const maxSocketPath = 107
const socketName = '.s.PGSQL.5432'

export const toSocketFile = (layout: Layout) => join(layout.socketDir, socketName)

/** Paths of the embedded database below the data directory. A socket path that would be too long moves to /tmp. */
export function makeLayout(dataDir: string): Layout {
  // Mode 711 lets other users enter but not list the data directory: the database's user must reach its own below.
  makeDirectories(resolve(dataDir), 0o711)
  const rootDir = join(realpathSync(dataDir), 'postgres')
  const preferredDir = join(rootDir, 'run')
  const fits = Buffer.byteLength(join(preferredDir, socketName)) < maxSocketPath
  const shortDir = join(tmpdir(), `assay-${createHash('sha256').update(rootDir).digest('hex').slice(0, 16)}`)
  return {
    rootDir,
    clusterDir: join(rootDir, 'cluster'),
    socketDir: fits ? preferredDir : shortDir,
    libraryLinks: join(rootDir, 'lib'),
    logFile: join(rootDir, 'postgres.log'),
  }
}

/**
 * Creates one directory at a time: Node's recursive mkdir never returns where none can be created, such as below /proc.
 */
function makeDirectories(path: string, mode: number) {
  if (existsSync(path)) return
  makeDirectories(dirname(path), mode)
  mkdirSync(path, { mode })
}

/** Creates the directories, accessible to the database's user only. */
export function prepareLayout(layout: Layout, owner: { uid: number; gid: number } | undefined) {
  for (const dir of [layout.rootDir, layout.socketDir]) {
    if (!existsSync(dir)) {
      mkdirSync(dir, { mode: 0o700 })
      if (owner !== undefined) chownSync(dir, owner.uid, owner.gid)
    }
    requireOwn(dir, owner?.uid ?? process.getuid?.() ?? 0)
    chmodSync(dir, 0o700)
  }
}

/** Another user could have prepared a directory in /tmp, and PostgreSQL refuses the cluster of another user. */
function requireOwn(dir: string, uid: number) {
  const found = lstatSync(dir)
  if (found.isDirectory() && found.uid === uid) return
  throw new Error(
    `${dir} belongs to the user with uid ${found.uid}, but the database would run as uid ${uid}. ` +
      'Start Assay as the user who first started it, or give it another ASSAY_DATA_DIR.',
  )
}
