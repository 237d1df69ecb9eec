import { readFileSync } from 'node:fs'
import manifest from '../../package.json' with { type: 'json' }

/** The version of Assay. */
export const { version } = manifest

/** Names a process uniquely over time: process IDs are reused, but not together with the start time and the boot. */
export function findProcessIdentity(pid: number): string | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'latin1')
    // The program name in parentheses may contain anything; after the last one follow the state and, as field 22, the start.
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
    const [state, startTicks] = [fields[0], fields[19]]
    if (state === 'Z' || state === 'X') return undefined
    const boot = readFileSync('/proc/sys/kernel/random/boot_id', 'latin1').slice(0, 8)
    return `${pid}-${startTicks}-${boot}`
  } catch {
    return undefined
  }
}

/** Whether the process with this identity still runs. */
export const isRunning = (identity: string): boolean => findProcessIdentity(Number.parseInt(identity, 10)) === identity

const tickMs = 10

/** The processor time that a process and its descendants have used, in steps of 10 ms; undefined when it is gone. */
export function findProcessorMs(pid: number): number | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'latin1')
    // The name of the program, in parentheses, may hold blanks.
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
    const children = readFileSync(`/proc/${pid}/task/${pid}/children`, 'latin1').trim()
    const own = (Number(fields[11]) + Number(fields[12])) * tickMs
    return children.split(' ').reduce((sum, child) => (child === '' ? sum : sum + readProcessorMs(Number(child))), own)
  } catch {
    return undefined
  }
}

/** The same, with 0 for a process that is gone. */
export const readProcessorMs = (pid: number): number => findProcessorMs(pid) ?? 0
