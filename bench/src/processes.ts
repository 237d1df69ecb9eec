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

/** Reads the memory of a process, with shared memory divided among its users. */
export const readShareMegabytes = (pid: number) =>
  Number(/^Pss:\s+(\d+) kB/m.exec(readProc(pid, 'smaps_rollup'))?.[1] ?? 0) / 1024

export const readCommandLine = (pid: number) => readProc(pid, 'cmdline').replaceAll('\0', ' ')

export const forgetPeak = (pid: number) => writeFileSync(`/proc/${pid}/clear_refs`, '5')

function readProc(pid: number, file: string): string {
  try {
    return readFileSync(`/proc/${pid}/${file}`, 'utf8')
  } catch {
    return ''
  }
}
