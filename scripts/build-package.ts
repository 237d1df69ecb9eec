import { spawnSync } from 'node:child_process'
import { copyFileSync, existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { basename, join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'

/**
 * Compiles the package of the working directory into dist/, or the given directory, which is everything that
 * `npm pack ./dist` packs. Inside the repository packages are used as sources, so that their exports name sources; the
 * exports in dist/ name the compiled files. Packages of this repository that it depends on are compiled into its
 * node_modules and packed with it, so that it installs from one file, without a registry.
 */
const root = fileURLToPath(new URL('..', import.meta.url))
build(process.cwd(), resolve(process.argv[2] ?? 'dist'))

function build(packageDir: string, outDir: string) {
  rmSync(outDir, { recursive: true, force: true })
  const tsc = join(root, 'node_modules/.bin/tsc')
  const options = { cwd: packageDir, stdio: 'inherit' } as const
  const { status } = spawnSync(tsc, ['-p', '.', '--outDir', outDir, '--pretty', 'false'], options)
  if (status !== 0) process.exit(1)
  correctDeclarations(outDir)

  const { private: _private, scripts: _scripts, devDependencies: _tools, ...manifest } = readManifest(packageDir)
  const bundled = Object.keys(manifest.dependencies ?? {}).filter((name) => name.startsWith('@assay/'))
  const published = {
    ...manifest,
    ...(manifest.exports !== undefined && { exports: toExports(manifest.exports) }),
    ...(manifest.bin !== undefined && { bin: toBuilt(manifest.bin, toScript) }),
    ...(bundled.length > 0 && { bundleDependencies: bundled }),
  }
  writeFileSync(join(outDir, 'package.json'), `${JSON.stringify(published, null, 2)}\n`)
  copyFileSync(join(root, 'LICENSE'), join(outDir, 'LICENSE'))
  for (const file of ['README.md', ...listDataFiles(manifest.exports)]) {
    if (existsSync(join(packageDir, file))) copyFileSync(join(packageDir, file), join(outDir, file))
  }
  for (const name of bundled) build(join(packageDir, '..', basename(name)), join(outDir, 'node_modules', name))
}

/** The compiler rewrites imports in scripts, but not in declarations. */
function correctDeclarations(dir: string) {
  const names = readdirSync(dir, { recursive: true, encoding: 'utf8' }).filter((name) => name.endsWith('.d.ts'))
  for (const path of names.map((name) => join(dir, name)))
    writeFileSync(path, readFileSync(path, 'utf8').replaceAll(/(['"])(\.{1,2}\/[^'"]+)\.ts\1/g, '$1$2.js$1'))
}

type Tree = string | { [key: string]: Tree }

function readManifest(packageDir: string) {
  return JSON.parse(readFileSync(join(packageDir, 'package.json'), 'utf8')) as {
    private?: boolean
    scripts?: object
    devDependencies?: object
    dependencies?: Record<string, string>
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
