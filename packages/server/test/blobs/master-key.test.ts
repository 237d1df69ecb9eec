import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { chmodSync, existsSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { makeMasterKey, openMasterKey } from '../../src/blobs/master-key.ts'
import { OperatorMistake } from '../../src/domain/problem.ts'
import { newTestDir } from './test-dir.ts'

const opener = fileURLToPath(new URL('master-key-opener.ts', import.meta.url))
const dataKey = Buffer.alloc(32, 'k')
const binding = ['test'] as const

/** Starts a process that opens the key when `open` is called. */
async function startOpener(dataDir: string) {
  const child = spawn(process.execPath, [opener, dataDir], { stdio: ['pipe', 'pipe', 'inherit'] })
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]()
  await lines.next()
  return {
    async open(): Promise<{ file: string; sealed: string }> {
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
  for (const { sealed } of opened) assert.deepEqual(master.open(Buffer.from(sealed, 'hex'), binding), dataKey)
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
  const sealed = openMasterKey(given, dataDir).seal(dataKey, binding)
  assert.deepEqual(readdirSync(dataDir), [])
  const ofDirectory = openMasterKey(undefined, dataDir)
  assert.throws(() => ofDirectory.open(sealed, binding), /another master key/)
  assert.deepEqual(openMasterKey(given, dataDir).open(sealed, binding), dataKey)
})

test('a value is sealed differently each time, and a changed one is refused', () => {
  const master = openMasterKey(randomBytes(32), '/nowhere')
  const sealed = master.seal(dataKey, binding)
  assert.notDeepEqual(sealed, master.seal(dataKey, binding))
  assert.equal(sealed.includes(dataKey), false)
  for (let at = 0; at < sealed.length; at++) {
    const changed = Buffer.from(sealed)
    changed[at] = (changed[at] ?? 0) ^ 1
    assert.throws(() => master.open(changed, binding), `byte ${at}`)
    assert.throws(() => master.open(sealed.subarray(0, at), binding), `${at} bytes`)
  }
})

test('a value opens for what it was sealed for only', () => {
  const master = openMasterKey(randomBytes(32), '/nowhere')
  const sealed = master.seal(dataKey, ['accounts.webhook_secret', 'a', 'b'])
  assert.deepEqual(master.open(sealed, ['accounts.webhook_secret', 'a', 'b']), dataKey)
  for (const other of [
    ['accounts.webhook_secret', 'a', 'c'],
    ['accounts.previous_webhook_secret', 'a', 'b'],
    ['accounts.webhook_secret', 'ab'],
    ['accounts.webhook_secret', 'a"', 'b'],
    ['accounts.webhook_secret', 'a', 'b', ''],
  ] as const) {
    assert.throws(() => master.open(sealed, other), /was changed, or belongs elsewhere/, other.join())
  }
})

test('a database that belongs to another key is refused, and no key is created for it', (t) => {
  const dataDir = newTestDir(t)
  const [expected, given] = [randomBytes(32), randomBytes(32)]
  const { id } = makeMasterKey(expected)
  assert.throws(() => openMasterKey(undefined, dataDir, id), /master\.key is missing/)
  assert.throws(() => openMasterKey(given, dataDir, id), /ASSAY_MASTER_KEY is another key/)
  assert.deepEqual(readdirSync(dataDir), [])
  openMasterKey(undefined, dataDir)
  assert.throws(() => openMasterKey(undefined, dataDir, id), /master\.key is another key/)
  assert.equal(openMasterKey(expected, dataDir, id).id, id)
})

test('a rotation that was interrupted is finished, or forgotten, as the database says', (t) => {
  const dataDir = newTestDir(t)
  const [file, next] = [join(dataDir, 'master.key'), join(dataDir, 'master.key.next')]
  const [oldKey, newKey] = [randomBytes(32), randomBytes(32)]
  writeFileSync(file, oldKey.toString('hex'))
  writeFileSync(next, newKey.toString('hex'))
  // Interrupted before the commit.
  assert.equal(openMasterKey(undefined, dataDir, makeMasterKey(oldKey).id).id, makeMasterKey(oldKey).id)
  assert.equal(readFileSync(file, 'utf8'), oldKey.toString('hex'))
  // Interrupted between the commit and the renaming.
  assert.equal(openMasterKey(undefined, dataDir, makeMasterKey(newKey).id).id, makeMasterKey(newKey).id)
  assert.equal(readFileSync(file, 'utf8'), newKey.toString('hex'))
  assert.equal(existsSync(next), false)
  assert.equal(readFileSync(`${file}.${makeMasterKey(oldKey).id}`, 'utf8'), oldKey.toString('hex'))
})
