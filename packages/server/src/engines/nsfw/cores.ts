import { spawnSync } from 'node:child_process'
import { randomInt } from 'node:crypto'
import { readFileSync } from 'node:fs'

export type Cores = {
  /** The one for a process that is started; undefined: any. Given back when it has ended. */
  take(): number | undefined
  release(core: number | undefined): void
}

/**
 * A core for each process to stay on, but for one. Service and database wake up between two pictures, and the kernel would
 * move the processes out of their way and away from what they have in its caches: that costs a tenth of the pictures. The
 * one goes wherever it is quiet, which is best when there is one picture. Where there are more cores than processes the
 * kernel does better by itself.
 */
export function makeCores({ processes, usable = listUsable() }: { processes: number; usable?: number[] }): Cores {
  const users = new Map(usable.map((core) => [core, 0]))
  const isFree = usable.length < 2 || processes < usable.length
  let roams = false
  const change = (core: number, by: number) => users.set(core, (users.get(core) ?? 0) + by)
  return {
    take() {
      if (isFree || !roams) {
        roams = true
        return undefined
      }
      const [least] = [...users].sort(([, a], [, b]) => a - b)
      if (least !== undefined) change(least[0], 1)
      return least?.[0]
    },
    release(core) {
      if (core === undefined) roams = false
      else change(core, -1)
    },
  }
}

/** What to spawn so that a program stays on a core. */
export const wrapPinned = (core: number, command: string, args: string[]) => ({
  command: 'taskset',
  args: ['--cpu-list', String(core), command, ...args],
})

/**
 * Those that we may use, from anywhere on: services that share a machine need not all begin with the same. None where it
 * cannot be told, or a program cannot be kept on one.
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

/** `0-2,5` are 0, 1, 2 and 5. */
export const toCores = (listed: string): number[] =>
  [...listed.matchAll(/(\d+)(?:-(\d+))?/g)].flatMap(([, first, last = first]) =>
    Array.from({ length: Number(last) - Number(first) + 1 }, (_, i) => Number(first) + i),
  )
