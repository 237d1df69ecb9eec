import { readdirSync, readFileSync } from 'node:fs'

/** Living processes whose command line holds this text; zombies have ended. */
export function findProcesses(text: string): number[] {
  return listProcesses().filter((pid) => read(pid, 'cmdline').replaceAll('\0', ' ').includes(text))
}

/** Ends them without a warning. One that has just ended by itself is no failure. */
export function killAll(pids: number[]) {
  for (const pid of pids) {
    try {
      process.kill(pid, 'SIGKILL')
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error
    }
  }
}

/** Whether it has not ended yet. */
export const isRunning = (pid: number): boolean => read(pid, 'cmdline') !== ''

/** The process of that name which this one has started. */
export function findChild(parent: number, name: string): number | undefined {
  return listProcesses().find((pid) => {
    const stat = readStat(pid)
    return stat.name === name && stat.parent === parent && stat.state !== 'Z'
  })
}

/** Those that this one has started, whose command line holds this text. */
export const findChildren = (parent: number, text: string): number[] =>
  findProcesses(text).filter((pid) => readStat(pid).parent === parent)

/** Hundredths of a second that it has worked so far. */
export const readWork = (pid: number): number => readStat(pid).work

const listProcesses = () =>
  readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .map(Number)

/** `123 (name) S 1 ...`: a name may hold anything, a closing bracket too. */
function readStat(pid: number) {
  const text = read(pid, 'stat')
  const end = text.lastIndexOf(')')
  const fields = text.slice(end + 2).split(' ')
  return {
    name: text.slice(text.indexOf('(') + 1, end),
    state: fields[0],
    parent: Number(fields[1]),
    work: Number(fields[11]) + Number(fields[12]),
  }
}

/** Nothing of one that has ended. */
function read(pid: number, file: 'cmdline' | 'stat'): string {
  try {
    return readFileSync(`/proc/${pid}/${file}`, 'latin1')
  } catch {
    return ''
  }
}
