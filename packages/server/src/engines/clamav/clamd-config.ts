import { createHash } from 'node:crypto'
import { chmodSync, chownSync, lchownSync, lstatSync, mkdirSync, realpathSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { maxUnpackedBytes } from '../../domain/ports/engines.ts'
import type { Unprivileged } from '../../runtime/unprivileged.ts'

/**
 * The settings of Assay's own clamd. Its limits are wide enough that content within Assay's size limits is scanned
 * whole; clamd reports content that exceeds them. Measured: with MaxFileSize at 260M clamd silently skipped a member of
 * 300 MB in a zip of 306 KB.
 */
export function toClamdConfig(options: {
  databaseDir: string
  socket: string
  scratchDir: string
  threads: number
  /** The most that one scan unpacks, unless a test gives less. */
  unpackedBytes?: number | undefined
}): string {
  const { unpackedBytes = maxUnpackedBytes } = options
  const settings: [name: string, value: string | number][] = [
    ['Foreground', 'yes'],
    ['LocalSocket', options.socket],
    ['LocalSocketMode', '660'],
    ['FixStaleSocket', 'yes'],
    ['DatabaseDirectory', options.databaseDir],
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

/**
 * Prepares clamd's directory below the data directory, for its settings and signatures. The directory belongs to the
 * service, and clamd's user may only read it: root must not write where another user could put a link. The socket has a
 * directory of its own, which belongs to clamd's user.
 */
export function prepareClamdDir(dataDir: string, name: string, { owner }: Unprivileged) {
  mkdirSync(dataDir, { recursive: true, mode: 0o711 })
  const dir = join(realpathSync(dataDir), name)
  // Its files are copies, so a directory that another user could write to is not worth keeping.
  if (lstatSync(dir, { throwIfNoEntry: false })?.uid !== process.getuid?.())
    rmSync(dir, { recursive: true, force: true })
  mkdirSync(dir, { recursive: true })
  if (owner !== undefined) chownSync(dir, process.getuid?.() ?? 0, owner.gid)
  chmodSync(dir, 0o750)
  const socket = toSocket(dir)
  prepareSocketDir(dirname(socket), owner)
  return {
    dir,
    socket,
    configFile: join(dir, 'clamd.conf'),
    databaseDir: join(dir, 'database'),
  }
}

/** In the directory for temporary files, other users can create a directory or link first; that one is refused. */
function prepareSocketDir(dir: string, owner: Unprivileged['owner']) {
  const uid = owner?.uid ?? process.getuid?.()
  const found = lstatSync(dir, { throwIfNoEntry: false })
  if (found === undefined) {
    mkdirSync(dir, { mode: 0o700 })
    if (owner !== undefined) lchownSync(dir, owner.uid, owner.gid)
  } else if (!found.isDirectory() || found.uid !== uid || (found.mode & 0o777) !== 0o700) {
    throw new Error(`${dir} is not a directory that only the user ${uid} can enter. Remove it.`)
  }
}

/** The socket's directory lies in clamd's, or in the directory for temporary files where the path would be too long. */
export function toSocket(dir: string): string {
  const socket = join(dir, 'run', 'clamd.sock')
  if (Buffer.byteLength(socket) < maxSocketPath) return socket
  const hash = createHash('sha256').update(dir).digest('hex').slice(0, 16)
  return join(tmpdir(), `assay-clamd-${hash}`, 'clamd.sock')
}
