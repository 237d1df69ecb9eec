import { mkdirSync, mkdtempSync, rmSync, statSync, utimesSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import type { TestContext } from 'node:test'

/** The three source directories and clamd's directory, removed after the test. */
export function newSignatureDirs(t: TestContext) {
  const root = mkdtempSync(join(tmpdir(), 'assay-signatures-'))
  t.after(() => rmSync(root, { recursive: true, force: true }))
  const dirs = {
    shipped: join(root, 'shipped'),
    official: join(root, 'official'),
    own: join(root, 'own'),
    shared: join(root, 'shared'),
  }
  const databaseDir = join(root, 'database')
  /** `minute` is the time of the last change, counted from a day long ago. */
  const write = (path: string, text: string, minute?: number) => {
    const file = join(root, path)
    mkdirSync(dirname(file), { recursive: true })
    writeFileSync(file, text)
    if (minute !== undefined) {
      const at = Date.UTC(2026, 0, 1) / 1000 + minute * 60
      utimesSync(file, at, at)
    }
    return file
  }
  write('shipped/assay.ndb', 'Ours:0:*:616161\n', 0)
  return { root, dirs, databaseDir, write, remove: (path: string) => rmSync(join(root, path)) }
}

export const cvd = (built: string, count: number) => `ClamAV-VDB:${built}:27820:${count}:90:${'0'.repeat(32)}:x:y:z`

export const toFile = (path: string) => {
  const { size, mtimeMs } = statSync(path)
  return { path, loadedAs: path, bytes: size, changedMs: mtimeMs }
}
