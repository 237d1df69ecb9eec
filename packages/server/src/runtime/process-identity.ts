import { readFileSync } from 'node:fs'

/** A name that no other process has or had: process numbers are used again, start times and boots are not. */
export function findProcessIdentity(pid: number): string | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'latin1')
    // The name in brackets may hold anything; what follows the last one is regular: the state, and in field 22 the start.
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
    const [state, startTicks] = [fields[0], fields[19]]
    if (state === 'Z' || state === 'X') return undefined
    const boot = readFileSync('/proc/sys/kernel/random/boot_id', 'latin1').slice(0, 8)
    return `${pid}-${startTicks}-${boot}`
  } catch {
    return undefined
  }
}

/** Whether the process of that name still runs. */
export const isRunning = (identity: string): boolean => findProcessIdentity(Number.parseInt(identity, 10)) === identity
