import { createHash } from 'node:crypto'
import { existsSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

/** Builds the console when it is missing or its sources have changed. */
const root = fileURLToPath(new URL('../packages/', import.meta.url))
const dist = join(root, 'console/dist')
const stampFile = join(dist, '.built-from')

const stamp = hashSources([
  'console/src',
  'console/public',
  'console/index.html',
  'console/vite.config.ts',
  'contract/src',
  '../docs/test-images',
])
if (!existsSync(stampFile) || readFileSync(stampFile, 'utf8') !== stamp) {
  process.stderr.write('Building the console…\n')
  const { build } = await import('vite').catch(() => {
    process.stderr.write('The console is not built: vite is missing. Run npm ci with development dependencies.\n')
    process.exit(1)
  })
  // On a terminal vite draws its progress, except in CI.
  process.env.CI ??= 'true'
  await build({ configFile: join(root, 'console/vite.config.ts'), logLevel: 'warn' })
}
// Written even when unchanged, because scripts/build-console.sh compares its age with the sources.
writeFileSync(stampFile, stamp)

function hashSources(paths: string[]): string {
  const hash = createHash('sha256')
  for (const path of paths.flatMap(listFiles)) hash.update(path).update(readFileSync(join(root, path)))
  return hash.digest('hex')
}

function listFiles(path: string): string[] {
  if (statSync(join(root, path)).isFile()) return [path]
  const names = readdirSync(join(root, path), { recursive: true, encoding: 'utf8' }).sort()
  return names.map((name) => join(path, name)).filter((name) => statSync(join(root, name)).isFile())
}
