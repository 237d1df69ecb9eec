import { existsSync, realpathSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { chooseUnprivileged, wrapGuarded } from '../../runtime/unprivileged.ts'
import { launcherDirs, toJailed } from '../jail/jail.ts'
import type { Policy } from '../jail/policy.ts'
import { tieringFlag } from './late-flags.ts'
import { findStrippedSources, loadProgram } from './stripped-sources.ts'

/** A program to spawn. */
export type Launch = {
  command: string
  args: string[]
  /** Variables beside PATH; nothing else of the service's environment is passed on. */
  env?: Record<string, string>
}

type NodeProgram = {
  /** Names the process in messages. */
  name: string
  program: string
  args?: string[]
  /** The policy of the program, which may read `reads`. */
  toPolicy(paths: { node: string; reads: string[] }): Policy
  readableDirs: string[]
  readableFiles?: string[]
  maxHeapMb: number
  /** Native libraries run outside of Node's permissions; only the jail confines them. */
  allowsAddons: boolean
  /** False for a program that is no child of `startChild`. */
  hasSocket?: boolean
  /** Further flags of Node. */
  flags?: string[]
}

/** Users that own nothing, in order of preference. Parsers run as the first that exists when the service is root. */
export const parserUsers = ['nobody', 'node', 'daemon']

const protocolDir = import.meta.dirname
const sourceRoot = realpathSync(join(protocolDir, '..', '..'))
const packageDir = join(protocolDir, '..', '..', '..')
/** package.json tells Node that the sources are modules; without it Node reads every file twice. */
const manifest = join(packageDir, 'package.json')
/** Node looks here for a package before it looks in the installation, if npm or another tool has made this directory. */
const nearestModules = join(packageDir, 'node_modules')

/**
 * The command that runs a program of ours on Node: in a jail, as an ordinary user, and with Node's permission model as
 * a further restriction of its JavaScript.
 */
export function toNodeLaunch(options: NodeProgram): Launch {
  const { readableFiles = [], args = [], flags = [], hasSocket = true } = options
  const node = realpathSync(process.execPath)
  const program = realpathSync(options.program)
  const dirs = [...new Set([protocolDir, ...options.readableDirs].map((dir) => realpathSync(dir)))]
  const sourceDirs = dirs.filter((dir) => dir.startsWith(sourceRoot))
  const stripped = findStrippedSources(options.name, sourceDirs)
  const files = [realpathSync(manifest), ...readableFiles, ...(stripped === undefined ? [] : [stripped])]
  const user = chooseUnprivileged(options.name, parserUsers, [...launcherDirs, ...dirs])
  const readableDirs = [...dirs, ...(existsSync(nearestModules) ? [realpathSync(nearestModules)] : [])]
  const permissions = [
    '--permission',
    ...(options.allowsAddons ? ['--allow-addons', '--disable-warning=SecurityWarning'] : []),
    ...[...readableDirs.map((dir) => join(dir, '*')), ...files].map((path) => `--allow-fs-read=${path}`),
    `--max-old-space-size=${options.maxHeapMb}`,
    // Without stripped sources, Node removes their types with WebAssembly: 40% of the start would be its second tier.
    ...(stripped === undefined ? [tieringFlag] : ['--require', loadProgram]),
  ]
  const policy = options.toPolicy({ node, reads: [...readableDirs, ...files] })
  const jailed = toJailed(policy, [...permissions, ...flags, program, ...args], {
    hasSocket,
    keepsCapability: user.hasCapability === true,
  })
  return wrapGuarded(user, jailed.command, jailed.args)
}

/** The `node_modules` that holds a resolved package, and beside it the package with its native part. */
export function findModulesDir(resolved: string): string {
  const path = realpathSync(fileURLToPath(resolved))
  return join(path.slice(0, path.lastIndexOf('/node_modules/')), 'node_modules')
}
