import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { chmodSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { openMasterKey } from '../../src/blobs/master-key.ts'
import { OperatorMistake } from '../../src/domain/problem.ts'
import { newTestDir } from './test-dir.ts'

const opener = fileURLToPath(new URL('master-key-opener.ts', import.meta.url))
const dataKey = Buffer.alloc(32, 'k')

/** Starts a process that opens the key when `open` is called. */
async function startOpener(dataDir: string) {
  const child = spawn(process.execPath, [opener, dataDir], { stdio: ['pipe', 'pipe', 'inherit'] })
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]()
  await lines.next()
  return {
    async open(): Promise<{ file: string; wrapped: string }> {
      child.stdin.write('now\n')
      return JSON.parse((await lines.next()).value ?? '')
    },
  }
}

test('8 processes that start at once on an empty directory use the same key', async (t) => {
  const dataDir = join(newTestDir(t), 'data')
  const openers = await Promise.all(Array.from({ length: 8 }, () => startOpener(dataDir)))
  const opened = await Promise.all(openers.map(({ open }) => open()))
  assert.equal(new Set(opened.map(({ file }) => file)).size, 1)
  const master = openMasterKey(undefined, dataDir)
  for (const { wrapped } of opened) assert.deepEqual(master.unwrap(Buffer.from(wrapped, 'hex')), dataKey)
  assert.deepEqual(readdirSync(dataDir), ['master.key'])
  assert.equal(statSync(join(dataDir, 'master.key')).mode & 0o777, 0o600)
})

test('a key file that others may read is made private', (t) => {
  const dataDir = newTestDir(t)
  openMasterKey(undefined, dataDir)
  const file = join(dataDir, 'master.key')
  const before = readFileSync(file, 'utf8')
  chmodSync(file, 0o644)
  openMasterKey(undefined, dataDir)
  assert.equal(statSync(file).mode & 0o777, 0o600)
  assert.equal(readFileSync(file, 'utf8'), before)
})

test('a file without a valid key is reported to the operator, and not replaced', (t) => {
  const dataDir = newTestDir(t)
  const file = join(dataDir, 'master.key')
  for (const broken of ['', '\n', 'abc', 'g'.repeat(64), 'a'.repeat(63), 'a'.repeat(65), `${'a'.repeat(64)}\nmore`]) {
    writeFileSync(file, broken)
    assert.throws(
      () => openMasterKey(undefined, dataDir),
      (error) =>
        error instanceof OperatorMistake && error.message.includes(file) && /64 hex digits/.test(error.message),
      JSON.stringify(broken),
    )
    assert.equal(readFileSync(file, 'utf8'), broken)
  }
})

test('a key in the settings is used without creating one in the directory', (t) => {
  const [given, dataDir] = [randomBytes(32), newTestDir(t)]
  const wrapped = openMasterKey(given, dataDir).wrap(dataKey)
  assert.deepEqual(readdirSync(dataDir), [])
  const ofDirectory = openMasterKey(undefined, dataDir)
  assert.throws(() => ofDirectory.unwrap(wrapped))
  assert.deepEqual(openMasterKey(given, dataDir).unwrap(wrapped), dataKey)
})

test('a data key is wrapped differently each time, and a changed wrapping is refused', () => {
  const master = openMasterKey(randomBytes(32), '/nowhere')
  const wrapped = master.wrap(dataKey)
  assert.notDeepEqual(wrapped, master.wrap(dataKey))
  assert.equal(wrapped.includes(dataKey), false)
  for (let at = 0; at < wrapped.length; at++) {
    const changed = Buffer.from(wrapped)
    changed[at] = (changed[at] ?? 0) ^ 1
    assert.throws(() => master.unwrap(changed), `byte ${at}`)
  }
})
