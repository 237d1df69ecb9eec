import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { hostname, tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { takeFileLock } from '../../src/runtime/files.ts'

function newLockPath(t: TestContext) {
  const dir = mkdtempSync(join(tmpdir(), 'assay-lock-'))
  t.after(() => rmSync(dir, { recursive: true }))
  return join(dir, 'service.lock')
}

test('a lock is held by one process, which is named, and is free after its release', (t) => {
  const path = newLockPath(t)
  const first = takeFileLock(path)
  assert('release' in first)
  assert.deepEqual(takeFileLock(path), { heldBy: { pid: String(process.pid), host: hostname() } })
  first.release()
  const next = takeFileLock(path)
  assert('release' in next)
  next.release()
})

test('a lock ends with a process that is killed, although its child lives on', async (t) => {
  const path = newLockPath(t)
  const source = new URL('../../src/runtime/files.ts', import.meta.url)
  const script = `
    import { spawn } from 'node:child_process'
    import { takeFileLock } from '${source}'
    takeFileLock('${path}')
    const child = spawn('sleep', ['1000'], { detached: true, stdio: 'ignore' })
    console.log(child.pid)
    setInterval(() => {}, 1000)`
  const holder = spawn(process.execPath, ['--input-type=module', '-e', script], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const [line] = await once(holder.stdout, 'data')
  const child = Number(line)
  t.after(() => process.kill(child, 'SIGKILL'))
  assert.deepEqual(takeFileLock(path), { heldBy: { pid: String(holder.pid), host: hostname() } })
  holder.kill('SIGKILL')
  await once(holder, 'exit')
  process.kill(child, 0)
  const lock = takeFileLock(path)
  assert('release' in lock)
  lock.release()
})
