import { spawnSync } from 'node:child_process'
import { copyFileSync, existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

/**
 * Compiles the package of the working directory into dist/, which is then all that `npm publish ./dist` sends. In the
 * repository a package is used as it is written, so its exports name sources; those of dist/ name what they became.
 */
const license = new URL('../LICENSE', import.meta.url).pathname

rmSync('dist', { recursive: true, force: true })
const { status } = spawnSync('tsc', ['-p', '.', '--pretty', 'false'], { stdio: 'inherit' })
if (status !== 0) process.exit(1)

const { private: _private, scripts: _scripts, devDependencies: _tools, ...manifest } = readManifest()
const published = {
  ...manifest,
  ...(manifest.exports !== undefined && { exports: toExports(manifest.exports) }),
  ...(manifest.bin !== undefined && { bin: toBuilt(manifest.bin, toScript) }),
}
writeFileSync(join('dist', 'package.json'), `${JSON.stringify(published, null, 2)}\n`)
copyFileSync(license, join('dist', 'LICENSE'))
for (const file of ['README.md', ...listDataFiles(manifest.exports)]) {
  if (existsSync(file)) copyFileSync(file, join('dist', file))
}

type Tree = string | { [key: string]: Tree }

function readManifest() {
  return JSON.parse(readFileSync('package.json', 'utf8')) as {
    private?: boolean
    scripts?: object
    devDependencies?: object
    exports?: Tree
    bin?: Tree
  }
}

function toExports(exports: Tree): Tree {
  return toBuilt(exports, (path) =>
    path.endsWith('.ts') ? { types: toScript(path).replace(/\.js$/, '.d.ts'), default: toScript(path) } : path,
  )
}

function toScript(path: string): string {
  return path.replace('./src/', './').replace(/\.ts$/, '.js')
}

function toBuilt(tree: Tree, convert: (path: string) => Tree): Tree {
  if (typeof tree === 'string') return convert(tree)
  return Object.fromEntries(Object.entries(tree).map(([key, value]) => [key, toBuilt(value, convert)]))
}

function listDataFiles(exports: Tree | undefined): string[] {
  const paths = typeof exports === 'object' ? Object.values(exports) : []
  return paths.filter((path) => typeof path === 'string').filter((path) => !path.endsWith('.ts'))
}
