import { execFileSync } from 'node:child_process'
import { rmSync } from 'node:fs'
import type { TestContext } from 'node:test'

const root = new URL('..', import.meta.url).pathname

/** Builds the package into its own directory, because several test files build at the same time. */
export function buildClient(t: TestContext): string {
  const dir = `${root}dist-test-${process.pid}`
  t.after(() => rmSync(dir, { recursive: true, force: true }))
  execFileSync(process.execPath, ['../../scripts/build-package.ts', dir], { cwd: root, stdio: 'pipe' })
  return dir
}
