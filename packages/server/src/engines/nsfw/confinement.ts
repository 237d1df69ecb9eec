import { spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { findModulesDir, type Launch, toNodeLaunch } from '../child-process/node-launch.ts'
import { policies } from '../jail/policy.ts'
import { wrapPinned } from './cores.ts'

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
