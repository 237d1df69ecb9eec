import assert from 'node:assert/strict'
import { truncateSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { waitUntil } from '../../../acceptance/support/wait-until.ts'
import { openFakeServer } from '../../client/test/fake-server.ts'
import { newEnv, openDir, startCli } from './run-cli.ts'

const id = '0199a3c5-52f1-7c39-8f0e-6f1d5d0f6a3b'
const result = { id, scan_type: 'malware', status: 'clean', content_length: 5, content_type: '', created_at: '' }

test('Ctrl-C in the middle of an upload cancels it, tells what was done, and is exit code 130', async (t) => {
  const cwd = openDir(t)
  writeFileSync(join(cwd, 'done.txt'), 'done.')
  writeFileSync(join(cwd, 'large.bin'), '')
  truncateSync(join(cwd, 'large.bin'), 50_000_000)
  const fake = await openFakeServer(t, ({ body }) => (body.includes('done.') ? { json: result } : 'silence'))
  const env = newEnv(cwd, { ASSAY_URL: fake.url, ASSAY_API_KEY: 'key' })
  const running = startCli(['--parallel', '1', 'done.txt', 'large.bin', 'never.txt'], { cwd, env })
  await waitUntil('the upload', () => fake.received() > 1_000_000)
  running.child.kill('SIGINT')
  const { code, out, err } = await running.ended
  assert.equal(code, 130)
  assert.match(
    out,
    /^done\.txt: OK\n\n-+ SCAN SUMMARY -+\nScanned files: 1\nInfected files: 0\nInterrupted: 1 file was under way\n/,
  )
  assert.equal(err, 'Interrupted. What is not listed above was not scanned.\n')
  await waitUntil('the connection to be closed', async () => (await fake.countConnections()) === 0)
})

test('a background scan that is waited for leaves its id behind', async (t) => {
  const cwd = openDir(t)
  writeFileSync(join(cwd, 'job.txt'), 'job')
  const fake = await openFakeServer(t, ({ method }) => (method === 'POST' ? { json: { id } } : 'silence'))
  const env = newEnv(cwd, { ASSAY_URL: fake.url, ASSAY_API_KEY: 'key' })
  const running = startCli(['--submit', '--wait', 'job.txt'], { cwd, env })
  await waitUntil('the question', () => fake.requests.length === 2)
  running.child.kill('SIGTERM')
  const { code, out } = await running.ended
  assert.equal(code, 143)
  assert.match(out, new RegExp(`^job\\.txt: ${id} SUBMITTED\n`))
})

test('standard input that never ends is left, and a pause for the rate too', async (t) => {
  const cwd = openDir(t)
  writeFileSync(join(cwd, 'a.txt'), 'a')
  const fake = await openFakeServer(t, () => ({
    status: 429,
    headers: { 'retry-after': '100' },
    json: { traceId: '00-1' },
  }))
  const env = newEnv(cwd, { ASSAY_URL: fake.url, ASSAY_API_KEY: 'key' })
  const paused = startCli(['a.txt'], { cwd, env })
  await waitUntil('the pause', () => paused.err().includes('Going on in 100 s.'))
  paused.child.kill('SIGINT')
  assert.equal((await paused.ended).code, 130)
  const waiting = startCli(['a.txt', '-'], { cwd, env, isInputOpen: true })
  await waitUntil('the pause', () => waiting.err().includes('Going on in 100 s.'))
  waiting.child.kill('SIGINT')
  const { code, out } = await waiting.ended
  assert.equal(code, 130)
  assert.match(out, /Interrupted: 2 files were under way/)
})
