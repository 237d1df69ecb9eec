import assert from 'node:assert/strict'
import fs, { existsSync, fstatSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { syncBuiltinESMExports } from 'node:module'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { writeOnce } from '../../src/runtime/files.ts'

/** Calls `onSync` with the inode of each file and directory that is synced, and syncs it. */
function watchSyncs(t: TestContext, onSync: (inode: number) => void) {
  const { fsyncSync } = fs
  t.mock.method(fs, 'fsyncSync', (handle: number) => {
    onSync(fstatSync(handle).ino)
    fsyncSync(handle)
  })
  syncBuiltinESMExports()
  t.after(() => {
    t.mock.restoreAll()
    syncBuiltinESMExports()
  })
}

test('a file is written once, and its directory is synced when it has its name', (t) => {
  const dir = mkdtempSync(join(tmpdir(), 'assay-once-'))
  t.after(() => rmSync(dir, { recursive: true }))
  const file = join(dir, 'name')
  const inode = fs.statSync(dir).ino
  const namedAtSync: boolean[] = []
  watchSyncs(t, (synced) => {
    if (synced === inode) namedAtSync.push(existsSync(file))
  })
  writeOnce(file, 'first')
  assert.deepEqual(namedAtSync, [true])
  writeOnce(file, 'second')
  assert.deepEqual(namedAtSync, [true, true])
  assert.equal(readFileSync(file, 'utf8'), 'first')
  assert.deepEqual(readdirSync(dir), ['name'])
})
