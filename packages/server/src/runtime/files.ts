import { spawnSync } from 'node:child_process'
import { createHash, randomBytes } from 'node:crypto'
import {
  accessSync,
  chmodSync,
  closeSync,
  constants,
  createReadStream,
  fchmodSync,
  fsyncSync,
  ftruncateSync,
  linkSync,
  lstatSync,
  mkdtempSync,
  openSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmdirSync,
  rmSync,
  symlinkSync,
  unlinkSync,
  writeFileSync,
  writeSync,
} from 'node:fs'
import { open } from 'node:fs/promises'
import { hostname, tmpdir } from 'node:os'
import { dirname, join, resolve, sep } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { openSystemLibrary } from './process.ts'

/**
 * Writes a file that only its owner can read, unless it exists. The file is written under a temporary name and linked,
 * so that of two processes one wins, and no process ever reads a partial file. The file and its name survive a power
 * failure.
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
  // Also when another process won: it may not have synced the name yet, and the caller relies on the file from now on.
  syncDirectorySync(dirname(file))
}

/** Syncs a directory, so that the names of its files survive a power failure. */
export async function syncDirectory(dir: string) {
  const handle = await open(dir)
  await handle.sync().finally(() => handle.close())
}

/** Does the same as `syncDirectory`, for callers that cannot wait for a promise. */
export function syncDirectorySync(dir: string) {
  const handle = openSync(dir, 'r')
  try {
    fsyncSync(handle)
  } finally {
    closeSync(handle)
  }
}

/**
 * Removes a file, or a directory with everything below. Directories of other users than root are emptied by a process
 * of their user: there, a name can become a link at any time, and root would follow it.
 */
export function removeTree(path: string) {
  const found = lstatSync(path, { throwIfNoEntry: false })
  if (found === undefined) return
  if (!found.isDirectory()) return unlinkSync(path)
  if (found.uid === 0 && process.getuid?.() === 0) for (const name of readdirSync(path)) removeTree(join(path, name))
  else emptyAsOwner(path, found)
  rmdirSync(path)
}

/**
 * The user may have made directories that it cannot list, and paths that are too long for one call: `find` enters one
 * directory after the other. The outermost is entered before the process becomes the user, who may be unable to reach
 * it by its path.
 */
function emptyAsOwner(dir: string, { uid, gid }: { uid: number; gid: number }) {
  const user = [`--reuid=${uid}`, `--regid=${gid}`, '--clear-groups', '--no-new-privs', '--bounding-set=-all']
  const asUser = uid === process.getuid?.() ? [] : ['setpriv', ...user, '--']
  const [command = '', ...args] = [...asUser, 'sh', '-c', 'chmod -R u+rwx .; exec find . -mindepth 1 -delete']
  try {
    openToOwner(dir)
  } catch {
    // The directory belongs to a user whom this process cannot become, as the exit status tells.
  }
  const { status } = spawnSync(command, args, { cwd: dir, env: { PATH: process.env.PATH }, stdio: 'ignore' })
  if (status !== 0) throw new Error(`${dir} belongs to another user (uid ${uid}) and cannot be emptied. Remove it.`)
}

/** Root follows no link here: another user can write to the directory around. */
function openToOwner(dir: string) {
  if (process.getuid?.() !== 0) return chmodSync(dir, 0o700)
  const descriptor = openSync(dir, constants.O_RDONLY | constants.O_DIRECTORY | constants.O_NOFOLLOW)
  fchmodSync(descriptor, 0o700)
  closeSync(descriptor)
}

/** Returns the SHA-256 of a file, hexadecimal. */
export async function hashFile(path: string): Promise<string> {
  const hash = createHash('sha256')
  await pipeline(createReadStream(path), hash)
  return hash.digest('hex')
}

/** The file system has no locks. */
export class FileLockUnavailable extends Error {}

/** The operation of flock(2) that takes a lock (2), without waiting for it (4). */
const lockAtOnce = 2 | 4

/**
 * Takes the lock of a file, which the kernel releases when this process ends in any way. Child processes do not inherit
 * it, because Node opens files close-on-exec. If another process has the lock, returns that process and its host, as it
 * wrote them.
 */
export function takeFileLock(path: string): { release(): void } | { heldBy: { pid: string; host: string } } {
  const { koffi, library } = openSystemLibrary()
  const flock = library.func('int flock(int descriptor, int operation)')
  const descriptor = openSync(path, constants.O_RDWR | constants.O_CREAT | constants.O_NOFOLLOW, 0o600)
  if (flock(descriptor, lockAtOnce) !== 0) {
    const code = koffi.errno()
    const [pid = '', host = ''] = readFileSync(descriptor, 'utf8').trim().split(' ')
    closeSync(descriptor)
    if (code === koffi.os.errno.EAGAIN) return { heldBy: { pid: pid || 'unknown', host } }
    throw new FileLockUnavailable(`the lock of ${path} cannot be taken (error ${code})`)
  }
  try {
    ftruncateSync(descriptor)
    writeSync(descriptor, `${process.pid} ${hostname()}\n`, 0)
  } catch {
    // The disk is full. The lock holds without a name, and the next write reports the disk.
  }
  return { release: () => closeSync(descriptor) }
}

/** Says what to do about an error of a file in the data directory, or on the way to it; undefined for other errors. */
export function explainFileError(error: unknown, dataDir: string): string | undefined {
  const { code = '', path } = error as NodeJS.ErrnoException
  return typeof path === 'string' && isRelated(path, dataDir) ? toSentence(code, path, resolve(dataDir)) : undefined
}

export const diskFull = (dataDir: string) =>
  `The disk of the data directory ${dataDir} is full. Make room on it, or ${useAnother}`

const useAnother = 'set ASSAY_DATA_DIR to another directory.'

function toSentence(code: string, path: string, dataDir: string): string | undefined {
  switch (code) {
    case 'EROFS':
      return `The data directory ${dataDir} is on a file system that is mounted read-only. Mount it writable, or ${useAnother}`
    case 'EACCES':
    case 'EPERM':
      return `The user with the id ${process.getuid?.()} may not use ${path}. Make it the owner of the data directory, or ${useAnother}`
    case 'ENOTDIR':
    case 'EEXIST':
      return `${dataDir} cannot be the data directory, because a part of this path is a file: ${useAnother}`
    case 'ENOSPC':
    case 'EDQUOT':
      return diskFull(dataDir)
    default:
      return undefined
  }
}

function isRelated(path: string, dataDir: string): boolean {
  const [one, other] = [resolve(path) + sep, resolve(dataDir) + sep]
  return one.startsWith(other) || other.startsWith(one)
}

/** Directories for sockets whose path below the data directory would be too long. */
export const shortDirs = [tmpdir(), '/dev/shm', '/run']

/**
 * A directory in one that all users can write to, such as `/tmp`. Its name is random, so that no other user can create
 * it first, and the link `remembered`, in a directory of this process, keeps it for the next start. Other users can
 * enter it, and not write to it. It is made in the first of the parents that can be written to.
 */
export function openOutsideDir(parents: string[], remembered: string): string {
  const known = findOutsideDir(remembered)
  if (known !== undefined && isWritable(known)) return known
  rmSync(remembered, { force: true })
  const made = makeIn(parents)
  chmodSync(made, 0o711)
  symlinkSync(made, remembered)
  return made
}

/** The directory that `openOutsideDir` has made, if it still is what it was. */
export function findOutsideDir(remembered: string): string | undefined {
  try {
    const dir = readlinkSync(remembered)
    const found = lstatSync(dir)
    return found.isDirectory() && found.uid === process.getuid?.() && (found.mode & 0o022) === 0 ? dir : undefined
  } catch {
    return undefined
  }
}

export function removeOutsideDir(remembered: string) {
  const dir = findOutsideDir(remembered)
  if (dir !== undefined) removeTree(dir)
  rmSync(remembered, { force: true })
}

function isWritable(dir: string): boolean {
  try {
    accessSync(dir, constants.W_OK)
    return true
  } catch {
    return false
  }
}

function makeIn([parent = '/', ...others]: string[]): string {
  try {
    return mkdtempSync(join(parent, 'assay-'))
  } catch (error) {
    if (others.length === 0) throw error
    return makeIn(others)
  }
}
