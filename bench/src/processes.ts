import { execFileSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'

const ticksPerSecond = 100

/** Lists a process and all its descendants. */
export function listTree(root: number): number[] {
  const lines = execFileSync('ps', ['-e', '-o', 'pid=,ppid='], { encoding: 'utf8' }).trim().split('\n')
  const all = lines.map((line) => line.trim().split(/\s+/).map(Number) as [pid: number, parent: number])
  const listBelow = (parent: number): number[] =>
    all.flatMap(([pid, of]) => (of === parent ? [pid, ...listBelow(pid)] : []))
  return [root, ...listBelow(root)]
}

/** Reads the name of the program; empty when the process has ended. */
export const readName = (pid: number) => readProc(pid, 'comm').trim()

/** Reads the processor time of all threads so far, in seconds. */
export const readCpuSeconds = (pid: number) => readTimes(pid, 11)

/** Reads the processor time of the main thread so far, in seconds. */
export const readThreadSeconds = (pid: number) => readTimes(pid, 11, `task/${pid}/stat`)

/** Reads the processor time of children that have ended, such as connections of PostgreSQL. */
export const readEndedCpuSeconds = (pid: number) => readTimes(pid, 13)

/** Fields after the name, which may contain blanks: user and system time are the 12th and 13th, of children the next. */
function readTimes(pid: number, first: 11 | 13, file = 'stat'): number {
  const fields = readProc(pid, file).split(') ').at(-1)?.split(' ') ?? []
  return (Number(fields[first] ?? 0) + Number(fields[first + 1] ?? 0)) / ticksPerSecond
}

/** Reads the processor time of the ended children of this process. */
export function readEndedSeconds(): number {
  const fields = readProc(process.pid, 'stat').split(') ').at(-1)?.split(' ') ?? []
  return (Number(fields[13] ?? 0) + Number(fields[14] ?? 0)) / ticksPerSecond
}

/** Reads the processor time that the whole machine has used so far. */
export function readBusySeconds(): number {
  const [, ...fields] = (readFileSync('/proc/stat', 'utf8').split('\n')[0] ?? '').split(/\s+/)
  const [user = 0, nice = 0, system = 0, , , irq = 0, softIrq = 0] = fields.map(Number)
  return (user + nice + system + irq + softIrq) / ticksPerSecond
}

/** Reads the peak memory since `forgetPeak`. */
export const readPeakMegabytes = (pid: number) =>
  Number(/^VmHWM:\s+(\d+) kB/m.exec(readProc(pid, 'status'))?.[1] ?? 0) / 1024

export const readMegabytes = (pid: number) =>
  Number(/^VmRSS:\s+(\d+) kB/m.exec(readProc(pid, 'status'))?.[1] ?? 0) / 1024

/**
 * Reads the memory of some processes, with what they share counted once: of each mapping, the most that one of them has.
 * The proportional share of the kernel would leave out a part of what other programs use as well.
 */
export function readMegabytesTogether(pids: number[]): number {
  let ownKilobytes = 0
  const shared = new Map<string, number>()
  for (const pid of pids) {
    for (const mapping of readProc(pid, 'smaps').split(/^(?=[0-9a-f]+-[0-9a-f]+ )/m)) {
      // A file may be at other addresses in another process; memory without a file is shared by forked ones, at the same.
      const [, range = '', mapped = '', inode = ''] = /^(\S+) (\S+ \S+ \S+ (\d+).*)/.exec(mapping) ?? []
      const part = inode === '0' ? `${range} ${mapped}` : mapped
      let ofMapping = 0
      for (const [, kind, text] of mapping.matchAll(/^(Private|Shared)_\w+: +(\d+) kB/gm)) {
        if (kind === 'Private') ownKilobytes += Number(text)
        else ofMapping += Number(text)
      }
      shared.set(part, Math.max(shared.get(part) ?? 0, ofMapping))
    }
  }
  return [...shared.values()].reduce((total, kilobytes) => total + kilobytes, ownKilobytes) / 1024
}

export const readCommandLine = (pid: number) => readProc(pid, 'cmdline').replaceAll('\0', ' ')

export const forgetPeak = (pid: number) => writeFileSync(`/proc/${pid}/clear_refs`, '5')

function readProc(pid: number, file: string): string {
  try {
    return readFileSync(`/proc/${pid}/${file}`, 'utf8')
  } catch {
    return ''
  }
}
