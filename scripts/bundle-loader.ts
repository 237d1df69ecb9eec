import { readFileSync, renameSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { cachedDataVersionTag } from 'node:v8'
import { Script } from 'node:vm'

/*
 * Loads the bundle of the service from its directory, of which this file is a part. Node's compile cache has only the
 * functions that V8 compiles while it loads a module, so that each service compiles more than a thousand others when
 * it calls them first: a sixth of the processor time of a start. The code cache of a script has all functions that were
 * called before it was made.
 */

/** Ends the name of a file with the code cache of a script. V8 rejects the cache of another version or other flags. */
export const codeCacheSuffix = `.${cachedDataVersionTag()}.cache`

type Module = { exports: Record<string, unknown> }

const dir = import.meta.dirname
const requirePackage = createRequire(import.meta.url)
const modules = new Map<string, Module>()
const scripts = new Map<string, Script>()

/** Returns what the file `name` of the bundle exports. */
export function load(name: string): Record<string, unknown> {
  const loaded = modules.get(name)
  if (loaded !== undefined) return loaded.exports
  const module: Module = { exports: {} }
  modules.set(name, module)
  const file = join(dir, name)
  const cachedData = readCodeCache(file)
  // Code of modules is strict, and has `import.meta.resolve`.
  const head = "(function (exports, require, module, __filename, __dirname, __resolveUrl) {'use strict';"
  const script = new Script(`${head}${readFileSync(file, 'latin1')}\n})`, {
    filename: file,
    ...(cachedData === undefined ? {} : { cachedData }),
  })
  scripts.set(file, script)
  script.runInThisContext()(module.exports, requireFrom, module, file, dir, import.meta.resolve)
  return module.exports
}

const requireFrom = Object.assign(
  (name: string) => (name.startsWith('./') ? load(name.slice(2)) : requirePackage(name)),
  { resolve: requirePackage.resolve },
)

function readCodeCache(file: string): Buffer | undefined {
  try {
    return readFileSync(`${file}${codeCacheSuffix}`)
  } catch {
    return undefined
  }
}

// The run of the tests lets one service write the code cache, after requests of the usual kinds.
if (process.env.ASSAY_TEST_CODE_CACHE === 'write')
  process.once('exit', () => {
    for (const [file, script] of scripts) {
      const part = `${file}.${process.pid}`
      writeFileSync(part, script.createCachedData())
      renameSync(part, `${file}${codeCacheSuffix}`)
    }
  })
