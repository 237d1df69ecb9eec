import { spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { accessSync, constants, existsSync, mkdirSync, readdirSync, readFileSync, realpathSync, rmSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { chooseUnprivileged, wrapGuarded } from '../../runtime/process.ts'
import { launcherDirs, toJailed } from '../jail/jail.ts'
import type { Policy } from '../jail/policy.ts'
import { tieringFlag } from './late-flags.ts'

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

/** The stripped sources lie in the installation, where only users who can change the program can write. */
const installationCache = join(packageDir, '../../node_modules/.cache/assay')
const stripProgram = fileURLToPath(new URL('strip-types.cjs', import.meta.url))

/** The program that each child loads before its own. */
export const loadProgram = fileURLToPath(new URL('load-stripped.cjs', import.meta.url))

/**
 * Returns a file with the sources below `dirs` as JavaScript, which `loadProgram` reads: Node would remove the types at
 * each start of a child, which takes 200 of the 360 ms of an unpacking process. The first call after a change of the
 * sources writes the file; its name contains their hash. Undefined where the installation cannot be written to.
 */
export function findStrippedSources(name: string, dirs: string[], cacheDir = installationCache): string | undefined {
  const files = dirs.flatMap(listSources)
  const sources = Object.fromEntries(files.map((file) => [pathToFileURL(file).href, readFileSync(file, 'utf8')]))
  const text = JSON.stringify(sources)
  const hash = createHash('sha256').update(process.version).update(text).digest('hex')
  const prefix = name.replaceAll(' ', '-')
  const target = join(cacheDir, `${prefix}-${hash.slice(0, 32)}.stripped`)
  return existsSync(target) || (canWrite(cacheDir) && writeStripped(target, prefix, text)) ? target : undefined
}

const listSources = (dir: string): string[] =>
  readdirSync(dir, { recursive: true, encoding: 'utf8' })
    .filter((path) => path.endsWith('.ts'))
    .map((path) => join(dir, path))

function canWrite(cacheDir: string): boolean {
  try {
    mkdirSync(cacheDir, { recursive: true })
    accessSync(cacheDir, constants.W_OK)
    return true
  } catch {
    return false
  }
}

function writeStripped(target: string, prefix: string, sources: string): boolean {
  const dir = dirname(target)
  // Removes the files of earlier versions. The children of a service that still uses one remove the types themselves.
  // Another service may be writing the same file at this moment.
  const isEarlier = (file: string) => file.startsWith(`${prefix}-`) && !file.startsWith(basename(target))
  for (const file of readdirSync(dir).filter(isEarlier)) rmSync(join(dir, file), { force: true })
  return spawnSync(process.execPath, ['--no-warnings', stripProgram, target], { input: sources, env: {} }).status === 0
}

/** The `node_modules` that holds a resolved package, and beside it the package with its native part. */
export function findModulesDir(resolved: string): string {
  const path = realpathSync(fileURLToPath(resolved))
  return join(path.slice(0, path.lastIndexOf('/node_modules/')), 'node_modules')
}
