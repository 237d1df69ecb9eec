import { readFileSync } from 'node:fs'

/** Reads the current or the peak memory of a process in megabytes. */
export const readRss = (pid: number) => read(pid, 'VmRSS')
export const readPeakRss = (pid: number) => read(pid, 'VmHWM')

function read(pid: number, name: string): number {
  const status = readFileSync(`/proc/${pid}/status`, 'utf8')
  return Math.round(Number(new RegExp(`^${name}:\\s+(\\d+)`, 'm').exec(status)?.[1]) / 1024)
}
