import { spawnSync } from 'node:child_process'
import { randomInt } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { findModulesDir, type Launch, toNodeLaunch } from '../child-process/node-launch.ts'
import { policies } from '../jail/policy.ts'

const sourceDir = import.meta.dirname
const domainDir = join(sourceDir, '..', '..', 'domain')
/** Pictures lie outside of the heap. */
const maxHeapMb = 128
/**
 * Little room for young objects saves 13 MB. Garbage is collected on the one core that the process has: further threads
 * would only take turns there.
 */
const heapFlags = ['--max-semi-space-size=2', '--single-threaded-gc']

/**
 * onnxruntime reports to its vendor unless it is told not to. The others are settings of glibc's allocator. Opening a
 * model leaves holes that glibc would keep: larger blocks, which go straight back to the system, save 85 MB with both
 * models as fp32. More than one arena is for threads that allocate at once.
 */
const environment = {
  ORT_DISABLE_TELEMETRY: '1',
  MALLOC_ARENA_MAX: '1',
  MALLOC_MMAP_THRESHOLD_: '131072',
  MALLOC_TRIM_THRESHOLD_: '1048576',
}

export type Confinement = {
  /** The processes have a network namespace of their own, beside the jail, which refuses every socket. */
  hasNamespace: boolean
  /** The command that runs the program confined, on the given core if any. */
  wrap(core?: number): Launch
}

/**
 * Pictures are hostile and their decoders are native code, so a process that opens them has nothing: no root, no secret,
 * no network, no file to write, and bounded memory (`maxDataMb`, enforced by the kernel).
 */
export function chooseConfinement(deps: { program: string; modelDirs: string[]; maxDataMb: number }): Confinement {
  const modules = ['sharp', 'onnxruntime-node'].map((name) => findModulesDir(import.meta.resolve(name)))
  const { command, args } = toNodeLaunch({
    name: 'image engine',
    program: deps.program,
    toPolicy: (paths) => policies.images({ ...paths, dataMb: deps.maxDataMb }),
    readableDirs: [sourceDir, domainDir, ...modules, ...deps.modelDirs],
    maxHeapMb,
    allowsAddons: true,
    flags: heapFlags,
  })
  // An ordinary user may leave the network inside a user namespace of its own, and keeps its identity there.
  const isRoot = process.getuid?.() === 0
  const namespaces = ['--net', ...(isRoot ? [] : ['--user', '--map-current-user']), '--']
  const hasNamespace = canRun({ command: 'unshare', args: [...namespaces, 'true'] })
  return {
    hasNamespace,
    wrap(core) {
      const pinned = core === undefined ? { command, args } : wrapPinned(core, command, args)
      const wrapped = hasNamespace
        ? { command: 'unshare', args: [...namespaces, pinned.command, ...pinned.args] }
        : pinned
      return { ...wrapped, env: environment }
    },
  }
}

const canRun = ({ command, args }: Launch) =>
  spawnSync(command, args, { stdio: 'ignore', timeout: 10_000 }).status === 0

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
const wrapPinned = (core: number, command: string, args: string[]) => ({
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
    return canRun(wrapPinned(cores[0] ?? 0, 'true', [])) ? cores : []
  } catch {
    return []
  }
}

/** Reads `0-2,5` as 0, 1, 2 and 5. */
export const toCores = (listed: string): number[] =>
  [...listed.matchAll(/(\d+)(?:-(\d+))?/g)].flatMap(([, first, last = first]) =>
    Array.from({ length: Number(last) - Number(first) + 1 }, (_, i) => Number(first) + i),
  )
