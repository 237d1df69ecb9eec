import { chmodSync, lchownSync, lstatSync, mkdirSync, realpathSync } from 'node:fs'
import { join } from 'node:path'
import { maxUnpackedBytes } from '../../domain/ports/engines.ts'
import { findOutsideDir, openOutsideDir, removeOutsideDir, removeTree, shortDirs } from '../../runtime/files.ts'
import type { Unprivileged } from '../../runtime/process.ts'
import { makeDirOfUser, scratchName } from '../jail/sandbox.ts'

/**
 * The settings of Assay's own clamd. Its limits are wide enough that content within Assay's size limits is scanned
 * whole; clamd reports content that exceeds them. Measured: with MaxFileSize at 260M clamd silently skipped a member of
 * 300 MB in a zip of 306 KB.
 */
export function toClamdConfig(options: {
  place: Pick<ClamdPlace, 'databaseDir' | 'boundSocket'>
  scratchDir: string
  threads: number
  /** The most that one scan unpacks, unless a test gives less. */
  unpackedBytes?: number | undefined
}): string {
  const { unpackedBytes = maxUnpackedBytes } = options
  const settings: [name: string, value: string | number][] = [
    ['Foreground', 'yes'],
    ['LocalSocket', options.place.boundSocket],
    ['LocalSocketMode', '660'],
    ['FixStaleSocket', 'yes'],
    ['DatabaseDirectory', options.place.databaseDir],
    ['TemporaryDirectory', options.scratchDir],
    ['LeaveTemporaryFiles', 'no'],
    ['LogTime', 'no'],
    ['LogClean', 'no'],
    ['ExtendedDetectionInfo', 'no'],

    ['MaxThreads', options.threads],
    ['MaxQueue', 200],
    // Assay receives content whole before it calls clamd, so clamd never waits for a caller.
    ['ReadTimeout', 60],
    ['CommandReadTimeout', 10],
    ['IdleTimeout', 300],
    // Assay watches the signatures and sends RELOAD; meanwhile scans use the old database.
    ['SelfCheck', 0],
    ['ConcurrentDatabaseReload', 'yes'],
    ['BytecodeUnsigned', 'no'],
    ['BytecodeTimeout', 20_000],

    // The size of the largest member: members of containers that clamd cannot open are streamed to it one by one.
    ['StreamMaxLength', unpackedBytes],
    ['MaxFileSize', unpackedBytes],
    ['MaxScanSize', unpackedBytes],
    // Elapsed time: the processor time that a scan may use is bounded before, unless the machine is very busy.
    ['MaxScanTime', 180_000],
    ['MaxRecursion', 20],
    ['MaxFiles', 50_000],
    ['MaxEmbeddedPE', '100M'],
    ['MaxHTMLNormalize', '100M'],
    ['MaxHTMLNoTags', '20M'],
    ['MaxScriptNormalize', '50M'],
    ['PCREMaxFileSize', '260M'],
    ['AlertExceedsMax', 'yes'],
    ['AlertEncrypted', 'yes'],
    ['AlertEncryptedArchive', 'yes'],
    ['AlertEncryptedDoc', 'yes'],
    ['HeuristicScanPrecedence', 'no'],
  ]
  return `${settings.map(([name, value]) => `${name} ${value}`).join('\n')}\n`
}

/** The kernel's limit on socket paths in bytes, with the closing zero. */
const maxSocketPath = 107

/** Where a clamd and its files are. */
export type ClamdPlace = {
  dir: string
  /** Where clamd creates its socket: in a directory of its own user. */
  boundSocket: string
  /** Where the service connects: in a directory of its own, so that clamd cannot replace the socket by a link. */
  socket: string
  configFile: string
  databaseDir: string
}

/**
 * Prepares clamd's directory below the data directory, for its settings and signatures. The directory belongs to the
 * service, and clamd's user may only read it: root must not write where another user could put a link. clamd creates its
 * socket in a directory that belongs to its user.
 */
export function prepareClamdDir(dataDir: string, name: string, { owner }: Unprivileged): ClamdPlace {
  mkdirSync(dataDir, { recursive: true, mode: 0o711 })
  const dir = join(realpathSync(dataDir), name)
  // Its files are copies, so a directory that another user could write to is not worth keeping.
  if (lstatSync(dir, { throwIfNoEntry: false })?.uid !== process.getuid?.()) removeTree(dir)
  mkdirSync(dir, { recursive: true })
  if (owner !== undefined) lchownSync(dir, process.getuid?.() ?? 0, owner.gid)
  chmodSync(dir, 0o750)
  const runDir = join(isShort(dir) ? dir : openOutsideDir(shortDirs, join(dir, outsideName)), 'run')
  makeDirOfUser(runDir, owner)
  return {
    dir,
    boundSocket: join(runDir, socketName),
    socket: toSocket(dir),
    configFile: join(dir, 'clamd.conf'),
    databaseDir: join(dir, 'database'),
  }
}

/** Removes the directory of a clamd that has ended. */
export function removeClamdDir(dir: string) {
  for (const name of [outsideName, scratchName]) removeOutsideDir(join(dir, name))
  removeTree(dir)
}

const socketName = 'clamd.sock'
/** The link to a directory with a short path, where the path of the directory of clamd is too long for a socket. */
const outsideName = 'short-path'

/** The socket lies in the directory of clamd, or in the directory for temporary files where its path would be too long. */
export const toSocket = (dir: string): string =>
  join((isShort(dir) ? undefined : findOutsideDir(join(dir, outsideName))) ?? dir, socketName)

const isShort = (dir: string) => Buffer.byteLength(join(dir, 'run', socketName)) < maxSocketPath
