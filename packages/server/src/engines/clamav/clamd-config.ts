import { createHash } from 'node:crypto'
import { chmodSync, chownSync, mkdirSync, realpathSync } from 'node:fs'
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

/** Prepares clamd's directory below the data directory: for its socket, settings, scratch files and signatures. */
export function prepareClamdDir(dataDir: string, name: string, user: Unprivileged) {
  mkdirSync(dataDir, { recursive: true, mode: 0o711 })
  const dir = join(realpathSync(dataDir), name)
  const socket = toSocket(dir)
  for (const path of new Set([dir, dirname(socket)])) {
    mkdirSync(path, { recursive: true })
    if (user.owner !== undefined) chownSync(path, user.owner.uid, user.owner.gid)
    chmodSync(path, 0o700)
  }
  return {
    dir,
    socket,
    configFile: join(dir, 'clamd.conf'),
    databaseDir: join(dir, 'database'),
  }
}

/** The socket lies in clamd's directory, or in the directory for temporary files where the path would be too long. */
export function toSocket(dir: string): string {
  const socket = join(dir, 'clamd.sock')
  if (Buffer.byteLength(socket) < maxSocketPath) return socket
  const hash = createHash('sha256').update(dir).digest('hex').slice(0, 16)
  return join(tmpdir(), `assay-clamd-${hash}`, 'clamd.sock')
}
