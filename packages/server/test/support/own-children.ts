import { readdirSync, readFileSync } from 'node:fs'

/** The processes that this one has started and whose command line holds this text. */
export function listOwnChildren(text: string): number[] {
  return readdirSync('/proc')
    .map(Number)
    .filter((pid) => findStat(pid)?.parent === process.pid && isRunning(pid) && readCommand(pid).includes(text))
}

/** A zombie has ended; its parent just has not taken note. */
export function isRunning(pid: number): boolean {
  const state = findStat(pid)?.state
  return state !== undefined && state !== 'Z' && state !== 'X'
}

export const isStopped = (pid: number): boolean => findStat(pid)?.state === 'T'

function readCommand(pid: number): string {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8')
  } catch {
    return ''
  }
}

function findStat(pid: number): { state: string; parent: number } | undefined {
  if (!Number.isInteger(pid)) return undefined
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
    const [state, parent] = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
    return state === undefined ? undefined : { state, parent: Number(parent) }
  } catch {
    return undefined
  }
}
