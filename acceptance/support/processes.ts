import { existsSync, readdirSync, readFileSync } from 'node:fs'

/** Lists running processes whose command line contains this text, without zombies. */
export function findProcesses(text: string): number[] {
  return listProcesses().filter((pid) => hasText(pid, text))
}

const hasText = (pid: number, text: string) => read(pid, 'cmdline').replaceAll('\0', ' ').includes(text)

/** The command lines of processes, for messages. */
export const describeProcesses = (pids: number[]): string[] =>
  pids.map((pid) => `${pid}: ${read(pid, 'cmdline').replaceAll('\0', ' ').trim()}`)

/** Sends SIGKILL to processes; ignores those that have already ended. */
export function killAll(pids: number[]) {
  for (const pid of pids) {
    try {
      process.kill(pid, 'SIGKILL')
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error
    }
  }
}

/** Tells whether the process still runs. Not by its command line, which is empty while it becomes another program. */
export const isRunning = (pid: number): boolean => !['', 'X', 'Z'].includes(readStat(pid).state)

/** Tells whether a signal has stopped the process. */
export const isStopped = (pid: number): boolean => readStat(pid).state === 'T'

/** Finds a running child of a process by the name of its program. */
export function findChild(parent: number, name: string): number | undefined {
  return listChildren(parent).find((pid) => {
    const stat = readStat(pid)
    return stat.name === name && stat.state !== 'Z'
  })
}

/** Lists running children of a process whose command line contains this text. */
export const findChildren = (parent: number, text: string): number[] =>
  listChildren(parent).filter((pid) => hasText(pid, text))

/** Processor time of a process so far, in hundredths of a second. */
export const readWork = (pid: number): number => readStat(pid).work

const listProcesses = () =>
  readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .map(Number)

/** Some kernels do not list the children of a process. */
const hasLists = existsSync('/proc/thread-self/children')

/** Tests call this hundreds of times while they wait, and beside other tests there are hundreds of processes. */
function listChildren(parent: number): number[] {
  if (!hasLists) return listProcesses().filter((pid) => readStat(pid).parent === parent)
  const lists = listThreads(parent).map((thread) => read(parent, `task/${thread}/children`))
  return lists.flatMap((list) => list.split(' ').filter(Boolean).map(Number))
}

function listThreads(pid: number): string[] {
  try {
    return readdirSync(`/proc/${pid}/task`)
  } catch {
    return []
  }
}

/** Parses `123 (name) S 1 ...`; the name may contain any character, including a closing bracket. */
function readStat(pid: number) {
  const text = read(pid, 'stat')
  const end = text.lastIndexOf(')')
  const fields = text.slice(end + 2).split(' ')
  return {
    name: text.slice(text.indexOf('(') + 1, end),
    state: fields[0] ?? '',
    parent: Number(fields[1]),
    work: Number(fields[11]) + Number(fields[12]),
  }
}

/** Returns an empty text when the process has ended. */
function read(pid: number, file: string): string {
  try {
    return readFileSync(`/proc/${pid}/${file}`, 'latin1')
  } catch {
    return ''
  }
}
