import { existsSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'

/** The pid of the server that runs on this cluster, if one really does. */
export function findPostmaster(clusterDir: string): number | undefined {
  const pid = readPid(join(clusterDir, 'postmaster.pid'))
  return pid !== undefined && isPostgres(pid) ? pid : undefined
}

/**
 * After kill -9 the lock files stay. The server refuses to start while the pid in them exists, even as a zombie or as
 * another program that was given the number since: then they are ours to remove.
 */
export function removeStaleLocks(clusterDir: string, socketFile: string) {
  if (findPostmaster(clusterDir) === undefined) rmSync(join(clusterDir, 'postmaster.pid'), { force: true })
  const socketOwner = readPid(`${socketFile}.lock`)
  if (socketOwner === undefined || !isPostgres(socketOwner)) {
    rmSync(`${socketFile}.lock`, { force: true })
    rmSync(socketFile, { force: true })
  }
}

/** A zombie has ended; its parent just has not taken note. */
export function isRunning(pid: number): boolean {
  const state = readStat(pid)?.state
  return state !== undefined && state !== 'Z' && state !== 'X'
}

function isPostgres(pid: number): boolean {
  return isRunning(pid) && readStat(pid)?.program === 'postgres'
}

function readPid(file: string): number | undefined {
  if (!existsSync(file)) return undefined
  const pid = Number.parseInt(readFileSync(file, 'utf8'), 10)
  return Number.isInteger(pid) && pid > 0 ? pid : undefined
}

/** `/proc/<pid>/stat` is `pid (program) state ...`, and the program may hold brackets and blanks itself. */
function readStat(pid: number): { program: string; state: string } | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
    const end = stat.lastIndexOf(')')
    return { program: stat.slice(stat.indexOf('(') + 1, end), state: stat.charAt(end + 2) }
  } catch {
    return undefined
  }
}
