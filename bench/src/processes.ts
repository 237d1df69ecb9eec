import { execFileSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'

const ticksPerSecond = 100

/** A process and everything below it. */
export function listTree(root: number): number[] {
  const lines = execFileSync('ps', ['-e', '-o', 'pid=,ppid='], { encoding: 'utf8' }).trim().split('\n')
  const all = lines.map((line) => line.trim().split(/\s+/).map(Number) as [pid: number, parent: number])
  const listBelow = (parent: number): number[] =>
    all.flatMap(([pid, of]) => (of === parent ? [pid, ...listBelow(pid)] : []))
  return [root, ...listBelow(root)]
}

/** The name of its program; empty when it is gone. */
export const readName = (pid: number) => readProc(pid, 'comm').trim()

/** Seconds of processor time so far, in all threads. */
export const readCpuSeconds = (pid: number) => readTimes(pid, 11)

/** Of its children that have ended: a connection to PostgreSQL is a process, and takes its time with it. */
export const readEndedCpuSeconds = (pid: number) => readTimes(pid, 13)

/** After the name, which may hold blanks: user and system time are the 12th and 13th, of ended children the next two. */
function readTimes(pid: number, first: 11 | 13): number {
  const fields = readProc(pid, 'stat').split(') ').at(-1)?.split(' ') ?? []
  return (Number(fields[first] ?? 0) + Number(fields[first + 1] ?? 0)) / ticksPerSecond
}

/** The same for all children of this process that have ended. */
export function readEndedSeconds(): number {
  const fields = readProc(process.pid, 'stat').split(') ').at(-1)?.split(' ') ?? []
  return (Number(fields[13] ?? 0) + Number(fields[14] ?? 0)) / ticksPerSecond
}

/** The most memory it held since `forgetPeak`. */
export const readPeakMegabytes = (pid: number) =>
  Number(/^VmHWM:\s+(\d+) kB/m.exec(readProc(pid, 'status'))?.[1] ?? 0) / 1024

export const readMegabytes = (pid: number) =>
  Number(/^VmRSS:\s+(\d+) kB/m.exec(readProc(pid, 'status'))?.[1] ?? 0) / 1024

/** What it shares with others is shared out among them. */
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
