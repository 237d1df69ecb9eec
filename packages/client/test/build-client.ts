import { execFileSync } from 'node:child_process'
import { rmSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

const root = fileURLToPath(new URL('..', import.meta.url))

let built: string | undefined

/**
 * Builds the package once for all test files of this process, into its own directory, because several processes build
 * at the same time.
 */
export function buildClient(): string {
  if (built !== undefined) return built
  const dir = `${root}dist-test-${process.pid}`
  process.once('exit', () => rmSync(dir, { recursive: true, force: true }))
  execFileSync(process.execPath, ['../../scripts/build-package.ts', dir], { cwd: root, stdio: 'pipe' })
  built = dir
  return dir
}
