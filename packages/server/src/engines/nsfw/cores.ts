import { spawnSync } from 'node:child_process'
import { randomInt } from 'node:crypto'
import { readFileSync } from 'node:fs'

export type Cores = {
  /** A core for a new process, to be released when the process has ended; undefined means any core. */
  take(): number | undefined
  release(core: number | undefined): void
}

/**
 * Pins each process but one to a core. Service and database wake up between two pictures, and the kernel would move the
 * processes out of their way and away from their caches, which costs a tenth of the pictures per second. The unpinned
 * process runs where the machine is idle, which is best for a single picture. Where there are more cores than
 * processes, the kernel does better by itself and no process is pinned.
 */
export function makeCores({ processes, usable = listUsable() }: { processes: number; usable?: number[] }): Cores {
  const users = new Map(usable.map((core) => [core, 0]))
  const neverPins = usable.length < 2 || processes < usable.length
  let hasUnpinned = false
  const change = (core: number, by: number) => users.set(core, (users.get(core) ?? 0) + by)
  return {
    take() {
      if (neverPins || !hasUnpinned) {
        hasUnpinned = true
        return undefined
      }
      const [least] = [...users].sort(([, a], [, b]) => a - b)
      if (least !== undefined) change(least[0], 1)
      return least?.[0]
    },
    release(core) {
      if (core === undefined) hasUnpinned = false
      else change(core, -1)
    },
  }
}

/** The command that runs a program on one core. */
export const wrapPinned = (core: number, command: string, args: string[]) => ({
  command: 'taskset',
  args: ['--cpu-list', String(core), command, ...args],
})

/**
 * The cores that this process may use, starting at a random one, so that services which share a machine do not all
 * prefer the same. Empty where the kernel does not tell, or taskset does not work.
 */
function listUsable(): number[] {
  try {
    const listed = /^Cpus_allowed_list:\s*(\S+)$/m.exec(readFileSync('/proc/self/status', 'latin1'))?.[1] ?? ''
    const all = toCores(listed)
    const start = randomInt(Math.max(1, all.length))
    const cores = [...all.slice(start), ...all.slice(0, start)]
    const { command, args } = wrapPinned(cores[0] ?? 0, 'true', [])
    return spawnSync(command, args, { stdio: 'ignore', timeout: 10_000 }).status === 0 ? cores : []
  } catch {
    return []
  }
}

/** Reads `0-2,5` as 0, 1, 2 and 5. */
export const toCores = (listed: string): number[] =>
  [...listed.matchAll(/(\d+)(?:-(\d+))?/g)].flatMap(([, first, last = first]) =>
    Array.from({ length: Number(last) - Number(first) + 1 }, (_, i) => Number(first) + i),
  )
