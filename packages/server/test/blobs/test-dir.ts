import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { TestContext } from 'node:test'

/** A directory that is removed after the test. */
export function newTestDir(t: TestContext): string {
  const dir = mkdtempSync(join(tmpdir(), 'assay-blobs-'))
  t.after(() => rmSync(dir, { recursive: true, force: true }))
  return dir
}
