import { spawnSync } from 'node:child_process'
import { realpathSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { chooseUnprivileged, wrapGuarded } from '../../runtime/unprivileged.ts'
import { findModulesDir } from '../worker/modules-dir.ts'
import type { Launch } from '../worker/worker-process.ts'
import { wrapPinned } from './cores.ts'

/** Owners of nothing, first. */
const imageUsers = ['nobody', 'node', 'daemon']

const [here = '', ...beside] = ['.', '../worker', '../../domain'].map((path) =>
  realpathSync(fileURLToPath(new URL(path, import.meta.url))),
)
/** Tells Node that the source is made of modules; without it every file is read twice. */
const manifest = join(here, '..', '..', '..', 'package.json')
/**
 * Pictures lie outside the heap. Young objects get little room, which is all they need and saves 13 MB. Their garbage is
 * collected on the one core that the process has: further threads would only take turns there.
 */
const maxScriptHeapMb = 128
const maxYoungMb = 2

/**
 * For glibc. Opening a model leaves holes, which it would keep: larger blocks that go straight back to the system save 85 MB
 * with both models as fp32. More than one pool is for threads that allocate at once.
 */
const allocation = {
  MALLOC_ARENA_MAX: '1',
  MALLOC_MMAP_THRESHOLD_: '131072',
  MALLOC_TRIM_THRESHOLD_: '1048576',
}

export type Confinement = {
  hasNetwork: boolean
  /** What to spawn so that node runs this program confined, on that core if one is given. */
  wrap(program: string, core?: number): Launch
}

/**
 * Pictures are hostile and their decoders are native code, so a process that opens them has nothing: no root, no secret,
 * no network where the kernel grants that, no file to write, and bounded memory. `maxDataMb` is what the kernel refuses to
 * go beyond.
 */
export function chooseConfinement(deps: { modelDirs: string[]; maxDataMb: number }): Confinement {
  const node = realpathSync(process.execPath)
  const modules = [...new Set(['sharp', 'onnxruntime-node'].map((name) => findModulesDir(import.meta.resolve(name))))]
  const user = chooseUnprivileged('image engine', imageUsers, [dirname(node), here, ...modules, ...deps.modelDirs])
  const limits = [`--data=${deps.maxDataMb * 1024 * 1024}`, '--fsize=0', '--']
  // An ordinary user may leave the network from inside a name space of users of its own, and stays who it is.
  const spaces = ['--net', ...(user.owner === undefined ? ['--user', '--map-current-user'] : []), '--']

  const plain = (command: string, args: string[]): Launch => wrapGuarded(user, 'prlimit', [...limits, command, ...args])
  const offline = (command: string, args: string[]): Launch => {
    const guarded = plain(command, args)
    return { command: 'unshare', args: [...spaces, guarded.command, ...guarded.args] }
  }
  const hasNetwork = !works(offline('true', []))
  const wrap = hasNetwork ? plain : offline
  return {
    hasNetwork,
    wrap(program, core) {
      const args = [...toFlags([here, ...beside, ...modules]), program]
      const pinned = core === undefined ? { command: node, args } : wrapPinned(core, node, args)
      return { ...wrap(pinned.command, pinned.args), env: allocation }
    },
  }
}

const toFlags = (readable: string[]) => [
  '--permission',
  '--allow-addons',
  ...readable.map((dir) => `--allow-fs-read=${join(dir, '*')}`),
  `--allow-fs-read=${manifest}`,
  '--disable-warning=SecurityWarning',
  `--max-old-space-size=${maxScriptHeapMb}`,
  `--max-semi-space-size=${maxYoungMb}`,
  '--single-threaded-gc',
]

const works = ({ command, args }: Launch) => spawnSync(command, args, { stdio: 'ignore', timeout: 10_000 }).status === 0
