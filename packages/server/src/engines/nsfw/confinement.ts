import { spawnSync } from 'node:child_process'
import { realpathSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { chooseUnprivileged, wrapGuarded } from '../../runtime/unprivileged.ts'
import { findModulesDir, type Launch, parserUsers, toNodeFlags } from '../child-process/node-launch.ts'
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
 * Settings of glibc's allocator. Opening a model leaves holes that glibc would keep: larger blocks, which go straight
 * back to the system, save 85 MB with both models as fp32. More than one arena is for threads that allocate at once.
 */
const allocation = {
  MALLOC_ARENA_MAX: '1',
  MALLOC_MMAP_THRESHOLD_: '131072',
  MALLOC_TRIM_THRESHOLD_: '1048576',
}

export type Confinement = {
  hasNetwork: boolean
  /** The command that runs a Node program confined, on the given core if any. */
  wrap(program: string, core?: number): Launch
}

/**
 * Pictures are hostile and their decoders are native code, so a process that opens them has nothing: no root, no secret,
 * no network where the kernel allows that, no file to write, and bounded memory (`maxDataMb`, enforced by the kernel).
 */
export function chooseConfinement(deps: { modelDirs: string[]; maxDataMb: number }): Confinement {
  const node = realpathSync(process.execPath)
  const modules = ['sharp', 'onnxruntime-node'].map((name) => findModulesDir(import.meta.resolve(name)))
  const user = chooseUnprivileged('image engine', parserUsers, [
    dirname(node),
    sourceDir,
    ...modules,
    ...deps.modelDirs,
  ])
  const limits = [`--data=${deps.maxDataMb * 1024 * 1024}`, '--fsize=0', '--']
  // An ordinary user may leave the network inside a user namespace of its own, and keeps its identity there.
  const namespaces = ['--net', ...(user.owner === undefined ? ['--user', '--map-current-user'] : []), '--']

  const online = (command: string, args: string[]): Launch =>
    wrapGuarded(user, 'prlimit', [...limits, command, ...args])
  const offline = (command: string, args: string[]): Launch => {
    const guarded = online(command, args)
    return { command: 'unshare', args: [...namespaces, guarded.command, ...guarded.args] }
  }
  const hasNetwork = !canRun(offline('true', []))
  const wrap = hasNetwork ? online : offline
  const flags = toNodeFlags({ readableDirs: [sourceDir, domainDir, ...modules], maxHeapMb, allowsAddons: true })
  return {
    hasNetwork,
    wrap(program, core) {
      const args = [...flags, ...heapFlags, program]
      const pinned = core === undefined ? { command: node, args } : wrapPinned(core, node, args)
      return { ...wrap(pinned.command, pinned.args), env: allocation }
    },
  }
}

const canRun = ({ command, args }: Launch) =>
  spawnSync(command, args, { stdio: 'ignore', timeout: 10_000 }).status === 0
