import { type ChildProcess, execFile, spawn } from 'node:child_process'
import {
  closeSync,
  constants,
  existsSync,
  fstatSync,
  lstatSync,
  openSync,
  readdirSync,
  readFileSync,
  readSync,
  renameSync,
  rmSync,
} from 'node:fs'
import { dirname, join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { promisify } from 'node:util'
import { OperatorMistake } from '../../domain/problem.ts'
import { diskFull, removeTree } from '../../runtime/files.ts'
import type { Unprivileged } from '../../runtime/process.ts'
import { type Binaries, type Layout, makeDatabaseDir } from './layout.ts'

export type Cluster = { layout: Layout; binaries: Binaries; unprivileged: Unprivileged }

const draftPrefix = 'cluster.new-'

/**
 * Creates the cluster in a draft directory and renames it when complete, so that a crash leaves no incomplete cluster.
 */
export async function createCluster({ layout, binaries, unprivileged }: Cluster) {
  removeDrafts(layout)
  const newDir = join(layout.rootDir, `${draftPrefix}${process.pid}`)
  makeDatabaseDir(newDir, unprivileged.owner)
  const { command, args, ...user } = unprivileged.wrap(binaries.initdb, [
    `--pgdata=${newDir}`,
    '--username=assay',
    '--encoding=UTF8',
    '--locale-provider=builtin',
    '--builtin-locale=C.UTF-8',
    '--locale=C',
    // Anyone who can open the socket may connect; its directory is closed to other users.
    '--auth=trust',
    '--data-checksums',
    '--no-instructions',
  ])
  try {
    await promisify(execFile)(command, args, { ...user, env: toEnvironment({ layout, binaries }), cwd: layout.rootDir })
  } catch (error) {
    removeTree(newDir)
    const { stderr = '' } = error as { stderr?: string }
    if (/No space left on device/.test(stderr))
      throw new OperatorMistake(diskFull(dirname(layout.rootDir)), { cause: error })
    throw new Error(`The database could not be created: ${stderr}`, { cause: error })
  }
  try {
    renameSync(newDir, layout.clusterDir)
  } catch (error) {
    removeTree(newDir)
    // Another process that started at the same time was faster.
    if (!existsSync(layout.clusterDir)) throw error
  }
}

/** Starts the server and returns at once; it is ready when it accepts connections. */
export function startServer({ layout, binaries, unprivileged }: Cluster): ChildProcess {
  const settings = {
    listen_addresses: '',
    unix_socket_directories: layout.socketDir,
    max_connections: '200',
    shared_buffers: '64MB',
    max_wal_size: '512MB',
    // Reads come from the page cache; three processes for asynchronous reads would only cost memory.
    io_method: 'sync',
    jit: 'off',
    timezone: 'UTC',
    log_timezone: 'UTC',
    cluster_name: 'assay',
    // Balances and rate windows are updated thousands of times a second.
    autovacuum_naptime: '15s',
  }
  const { command, args, ...user } = unprivileged.wrap(binaries.postgres, [
    '-D',
    layout.clusterDir,
    ...Object.entries(settings).flatMap(([name, value]) => ['-c', `${name}=${value}`]),
  ])
  const log = openSync(layout.logFile, 'w', 0o600)
  try {
    // The server is detached: Ctrl-C reaches the whole process group, and draining requests still need the database.
    const options = { ...user, env: toEnvironment({ layout, binaries }), cwd: layout.rootDir, detached: true }
    const child = spawn(command, args, { ...options, stdio: ['ignore', log, log] })
    child.unref()
    return child
  } finally {
    closeSync(log)
  }
}

/** Stops the server of the cluster, whether this process started it or an earlier one left it running. */
export async function stopServer(layout: Layout) {
  const pid = findPostmaster(layout.clusterDir)
  if (pid === undefined) return
  // SIGINT (fast): rolls back open transactions and writes a checkpoint. SIGQUIT (immediate), if that takes too long:
  // the next start recovers.
  for (const signal of ['SIGINT', 'SIGQUIT', 'SIGKILL'] as const) {
    try {
      process.kill(pid, signal)
    } catch {
      return
    }
    for (let waitedMs = 0; waitedMs < 15_000; waitedMs += 20) {
      if (!isRunning(pid)) return
      await sleep(20)
    }
  }
}

export function readServerLog(layout: Layout): string {
  if (!existsSync(layout.logFile)) return ''
  return readFileSync(layout.logFile, 'utf8').trim().split('\n').slice(-5).join('\n')
}

function removeDrafts(layout: Layout) {
  for (const name of readdirSync(layout.rootDir)) {
    if (!name.startsWith(draftPrefix) || isRunning(Number(name.slice(draftPrefix.length)))) continue
    removeTree(join(layout.rootDir, name))
  }
}

const toEnvironment = ({ layout, binaries }: Pick<Cluster, 'layout' | 'binaries'>) => ({
  PATH: process.env.PATH ?? '/usr/bin:/bin',
  LC_ALL: 'C',
  TZ: 'UTC',
  LD_LIBRARY_PATH: `${layout.libraryLinks}:${binaries.libraryDir}`,
})

/** The process id of the server that runs on this cluster. */
export function findPostmaster(clusterDir: string): number | undefined {
  const pid = readPid(join(clusterDir, 'postmaster.pid'))
  return pid !== undefined && isPostgres(pid) && isOfOwner(pid, clusterDir) ? pid : undefined
}

/**
 * Removes lock files that a server killed with SIGKILL left behind. A server refuses to start while their process id
 * exists, even if that process is a zombie or another program that got the same id later.
 */
export function removeStaleLocks(clusterDir: string, socketFile: string) {
  if (findPostmaster(clusterDir) === undefined) rmSync(join(clusterDir, 'postmaster.pid'), { force: true })
  const socketOwner = readPid(`${socketFile}.lock`)
  if (socketOwner === undefined || !isPostgres(socketOwner)) {
    rmSync(`${socketFile}.lock`, { force: true })
    rmSync(socketFile, { force: true })
  }
}

/** A zombie counts as ended: its parent has not collected its exit status yet. */
function isRunning(pid: number): boolean {
  const state = readStat(pid)?.state
  return state !== undefined && state !== 'Z' && state !== 'X'
}

/** The file is written by the database's user: it must not make root end the process of another. */
function isOfOwner(pid: number, clusterDir: string): boolean {
  try {
    const [, uid] = /^Uid:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8')) ?? []
    return Number(uid) === lstatSync(clusterDir).uid
  } catch {
    return false
  }
}

function isPostgres(pid: number): boolean {
  return isRunning(pid) && readStat(pid)?.program === 'postgres'
}

/** Reads a file of the database's user, who could put a link or a pipe in its place. */
function readPid(path: string): number | undefined {
  try {
    const file = openSync(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK)
    try {
      const start = Buffer.alloc(20)
      const pid = fstatSync(file).isFile() ? Number.parseInt(start.toString('latin1', 0, readSync(file, start)), 10) : 0
      return Number.isInteger(pid) && pid > 0 ? pid : undefined
    } finally {
      closeSync(file)
    }
  } catch {
    return undefined
  }
}

/** `/proc/<pid>/stat` is `pid (program) state ...`; the name of the program may contain parentheses and spaces. */
function readStat(pid: number): { program: string; state: string } | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
    const end = stat.lastIndexOf(')')
    return { program: stat.slice(stat.indexOf('(') + 1, end), state: stat.charAt(end + 2) }
  } catch {
    return undefined
  }
}
