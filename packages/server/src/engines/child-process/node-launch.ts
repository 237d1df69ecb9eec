import { realpathSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

/** A program to spawn, with the user that it runs as. */
export type Launch = {
  command: string
  args: string[]
  uid?: number
  gid?: number
  /** Variables beside PATH; nothing else of the service's environment is passed on. */
  env?: Record<string, string>
}

/** Users that own nothing, in order of preference. Parsers run as the first that exists when the service is root. */
export const parserUsers = ['nobody', 'node', 'daemon']

const protocolDir = import.meta.dirname
/** package.json tells Node that the sources are modules; without it Node reads every file twice. */
const manifest = join(protocolDir, '..', '..', '..', 'package.json')

/**
 * Node removes the types of the sources with a WebAssembly program. V8 would compile its functions a second time for
 * speed, which is 40% of the start of an unpacking process. Functions that run for long, as in 7-Zip, still get it.
 */
const tieringBudget = 1_000_000_000

/** Flags of Node that let a child read the given directories and files, and nothing else. */
export function toNodeFlags(options: {
  readableDirs: string[]
  readableFiles?: string[]
  maxHeapMb: number
  /** Native libraries run outside of Node's permissions; the kernel has to confine them. */
  allowsAddons: boolean
}): string[] {
  const { readableDirs, readableFiles = [], maxHeapMb, allowsAddons } = options
  const paths = [...new Set([protocolDir, ...readableDirs])].map((dir) => join(realpathSync(dir), '*'))
  return [
    '--permission',
    ...(allowsAddons ? ['--allow-addons', '--disable-warning=SecurityWarning'] : []),
    ...[...paths, manifest, ...readableFiles].map((path) => `--allow-fs-read=${path}`),
    `--max-old-space-size=${maxHeapMb}`,
    `--wasm-tiering-budget=${tieringBudget}`,
  ]
}

/** The `node_modules` that holds a resolved package, and beside it the package with its native part. */
export function findModulesDir(resolved: string): string {
  const path = realpathSync(fileURLToPath(resolved))
  return join(path.slice(0, path.lastIndexOf('/node_modules/')), 'node_modules')
}
