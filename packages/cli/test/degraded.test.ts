import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { newResult, scanId } from '../../client/test/fake-server.ts'
import { openFakeCli } from './run-cli.ts'

test('a degraded service is named once, and with --strict its clean files are exit code 2', async (t) => {
  const degraded = "ClamAV's official databases are missing: run freshclam."
  const { cwd, run } = await openFakeCli(t, () => ({ json: { ...newResult(), metadata: { degraded } } }))
  for (const name of ['one.txt', 'two.txt']) writeFileSync(join(cwd, name), name)
  const lenient = await run('--parallel', '1', 'one.txt', 'two.txt')
  assert.equal(lenient.code, 0)
  assert.equal(lenient.err, `Warning: the service is degraded. ${degraded}\n`)
  assert.match(lenient.out, /^one\.txt: OK\ntwo\.txt: OK\n.*\nScanned by a degraded service: 2\n/s)
  const strict = await run('--strict', '--infected', '--no-summary', 'one.txt')
  assert.deepEqual([strict.code, strict.out, strict.err], [2, '', lenient.err])
  const result = await run('result', '--strict', scanId)
  assert.deepEqual([result.code, result.err], [2, lenient.err])
})

test('with --strict a threat of a degraded service is still exit code 1', async (t) => {
  const json = { ...newResult('threat', ['Virus:X']), metadata: { degraded: 'ClamAV is missing.' } }
  const { cwd, run } = await openFakeCli(t, () => ({ json }))
  writeFileSync(join(cwd, 'one.txt'), 'one')
  assert.equal((await run('--strict', 'one.txt')).code, 1)
})

test('a service that refuses malware scans while it is degraded is named with the reason, at once', async (t) => {
  const detail = "ClamAV's official databases are missing: run freshclam. Nothing was charged."
  const { cwd, fake, run } = await openFakeCli(t, () => ({
    status: 503,
    headers: { 'Retry-After': '300' },
    json: {
      type: 'http://x.test/problems/degraded',
      title: 'Malware scans refused',
      status: 503,
      detail,
      traceId: 'x',
    },
  }))
  writeFileSync(join(cwd, 'one.txt'), 'one')
  const { code, out, err } = await run('--no-summary', 'one.txt')
  assert.deepEqual([code, out], [2, ''])
  assert(err.startsWith(detail), err)
  assert.equal(fake.requests.length, 1)
})
