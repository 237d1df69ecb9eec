import { spawnSync } from 'node:child_process'
import { copyFileSync, existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

/**
 * Compiles the package of the working directory into dist/, or the given directory, which is everything that
 * `npm publish ./dist` sends. Inside the repository packages are used as sources, so that their exports name sources;
 * the exports in dist/ name the compiled files.
 */
const outDir = process.argv[2] ?? 'dist'
const license = new URL('../LICENSE', import.meta.url).pathname

rmSync(outDir, { recursive: true, force: true })
const tsc = new URL('../node_modules/.bin/tsc', import.meta.url).pathname
const { status } = spawnSync(tsc, ['-p', '.', '--outDir', outDir, '--pretty', 'false'], { stdio: 'inherit' })
if (status !== 0) process.exit(1)

// The compiler rewrites imports in scripts, but not in declarations.
for (const name of readdirSync(outDir, { recursive: true, encoding: 'utf8' }).filter((name) =>
  name.endsWith('.d.ts'),
)) {
  const path = join(outDir, name)
  writeFileSync(path, readFileSync(path, 'utf8').replaceAll(/(['"])(\.{1,2}\/[^'"]+)\.ts\1/g, '$1$2.js$1'))
}

const { private: _private, scripts: _scripts, devDependencies: _tools, ...manifest } = readManifest()
const published = {
  ...manifest,
  ...(manifest.exports !== undefined && { exports: toExports(manifest.exports) }),
  ...(manifest.bin !== undefined && { bin: toBuilt(manifest.bin, toScript) }),
}
writeFileSync(join(outDir, 'package.json'), `${JSON.stringify(published, null, 2)}\n`)
copyFileSync(license, join(outDir, 'LICENSE'))
for (const file of ['README.md', ...listDataFiles(manifest.exports)]) {
  if (existsSync(file)) copyFileSync(file, join(outDir, file))
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
