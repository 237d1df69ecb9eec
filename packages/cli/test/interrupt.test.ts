import assert from 'node:assert/strict'
import { truncateSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { waitUntil } from '../../../acceptance/support/wait-until.ts'
import { newResult, scanId } from '../../client/test/fake-server.ts'
import { openFakeCli } from './run-cli.ts'

test('Ctrl-C during an upload cancels it, prints a summary and gives exit code 130', async (t) => {
  const { cwd, fake, start } = await openFakeCli(t, ({ body }) =>
    body.includes('done.') ? { json: newResult() } : 'silence',
  )
  writeFileSync(join(cwd, 'done.txt'), 'done.')
  writeFileSync(join(cwd, 'large.bin'), '')
  truncateSync(join(cwd, 'large.bin'), 50_000_000)
  const running = start(['--parallel', '1', 'done.txt', 'large.bin', 'never.txt'])
  await waitUntil('the upload', () => fake.received() > 1_000_000)
  running.child.kill('SIGINT')
  const { code, out, err } = await running.ended
  assert.equal(code, 130)
  assert.match(out, /^done\.txt: OK\n\n-+ SCAN SUMMARY -+\nScanned files: 1\nInfected files: 0\nInterrupted scans: 1\n/)
  assert.equal(err, 'Interrupted. Files not listed above were not scanned.\n')
  await waitUntil('the connection to be closed', async () => (await fake.countConnections()) === 0)
})

test('an interrupt while waiting for a background scan prints its id', async (t) => {
  const { cwd, fake, start } = await openFakeCli(t, ({ method }) =>
    method === 'POST' ? { json: { id: scanId } } : 'silence',
  )
  writeFileSync(join(cwd, 'job.txt'), 'job')
  const running = start(['--submit', '--wait', 'job.txt'])
  await waitUntil('the request for the result', () => fake.requests.length === 2)
  running.child.kill('SIGTERM')
  const { code, out } = await running.ended
  assert.equal(code, 143)
  assert.match(out, new RegExp(`^job\\.txt: ${scanId} SUBMITTED\n`))
})

test('an interrupt ends a wait for the rate limit and for standard input', async (t) => {
  const limited = { status: 429, headers: { 'retry-after': '100' }, json: { traceId: '00-1' } }
  const { cwd, start } = await openFakeCli(t, () => limited)
  writeFileSync(join(cwd, 'a.txt'), 'a')
  for (const [args, scans] of [
    [['a.txt'], 1],
    [['a.txt', '-'], 2],
  ] as const) {
    const running = start([...args], { isInputOpen: true })
    await waitUntil('the pause', () => running.err().includes('Continuing in 100 s.'))
    running.child.kill('SIGINT')
    const { code, out } = await running.ended
    assert.equal(code, 130)
    assert.match(out, new RegExp(`Interrupted scans: ${scans}\n`))
  }
})
