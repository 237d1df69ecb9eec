import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { closeSync, existsSync, openSync, readdirSync, readFileSync, renameSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { promisify } from 'node:util'
import type { Unprivileged } from '../../runtime/unprivileged.ts'
import type { Binaries } from './binaries.ts'
import type { Layout } from './layout.ts'
import { findPostmaster, isRunning } from './postmaster.ts'

export type Cluster = { layout: Layout; binaries: Binaries; unprivileged: Unprivileged }

const unfinished = 'cluster.new-'

/** Made beside its place and moved there when complete, so that a crash in between leaves nothing half-made. */
export async function createCluster({ layout, binaries, unprivileged }: Cluster) {
  removeUnfinished(layout)
  const newDir = join(layout.rootDir, `${unfinished}${process.pid}`)
  const { command, args, ...user } = unprivileged.wrap(binaries.initdb, [
    ...['--pgdata', newDir, '--username', 'assay', '--encoding', 'UTF8'],
    ...['--locale-provider', 'builtin', '--builtin-locale', 'C.UTF-8', '--locale', 'C'],
    // Whoever gets to the socket is in: its directory lets nobody else through.
    ...['--auth', 'trust', '--data-checksums', '--no-instructions'],
  ])
  try {
    await promisify(execFile)(command, args, { ...user, env: toEnvironment({ layout, binaries }), cwd: layout.rootDir })
  } catch (error) {
    rmSync(newDir, { recursive: true, force: true })
    throw new Error(`The database could not be created: ${(error as { stderr?: string }).stderr ?? ''}`, {
      cause: error,
    })
  }
  try {
    renameSync(newDir, layout.clusterDir)
  } catch (error) {
    rmSync(newDir, { recursive: true, force: true })
    // Another process that was started at the same moment won.
    if (!existsSync(layout.clusterDir)) throw error
  }
}

/** Starts the server and returns at once; it is up when it takes connections. */
export function startServer({ layout, binaries, unprivileged }: Cluster): ChildProcess {
  const settings = {
    listen_addresses: '',
    unix_socket_directories: layout.socketDir,
    max_connections: '200',
    shared_buffers: '64MB',
    max_wal_size: '512MB',
    // Reads come from the page cache; three more processes for them would only cost memory.
    io_method: 'sync',
    jit: 'off',
    timezone: 'UTC',
    log_timezone: 'UTC',
    cluster_name: 'assay',
    // Hot rows are rewritten thousands of times a second.
    autovacuum_naptime: '15s',
  }
  const { command, args, ...user } = unprivileged.wrap(binaries.postgres, [
    ...['-D', layout.clusterDir],
    ...Object.entries(settings).flatMap(([name, value]) => ['-c', `${name}=${value}`]),
  ])
  const log = openSync(layout.logFile, 'w', 0o600)
  try {
    // Detached: Ctrl-C goes to the whole process group, and the database must outlive the requests being drained.
    const options = { ...user, env: toEnvironment({ layout, binaries }), cwd: layout.rootDir, detached: true }
    const child = spawn(command, args, { ...options, stdio: ['ignore', log, log] })
    child.unref()
    return child
  } finally {
    closeSync(log)
  }
}

/** Ends whichever server runs on the cluster, our child or one that an earlier process left behind. */
export async function stopServer(layout: Layout) {
  const pid = findPostmaster(layout.clusterDir)
  if (pid === undefined) return
  // Fast: rolls back what is open and writes a checkpoint. Immediate, when it takes too long: recovers at next start.
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

function removeUnfinished(layout: Layout) {
  for (const name of readdirSync(layout.rootDir)) {
    if (!name.startsWith(unfinished) || isRunning(Number(name.slice(unfinished.length)))) continue
    rmSync(join(layout.rootDir, name), { recursive: true, force: true })
  }
}

const toEnvironment = ({ layout, binaries }: Pick<Cluster, 'layout' | 'binaries'>) => ({
  PATH: process.env.PATH ?? '/usr/bin:/bin',
  LC_ALL: 'C',
  TZ: 'UTC',
  LD_LIBRARY_PATH: `${layout.libraryLinks}:${binaries.libraryDir}`,
})
