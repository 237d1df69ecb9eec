import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { readFileSync, statSync, truncateSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { getSharedService } from '../../../acceptance/support/shared-service.ts'
import { waitUntil } from '../../../acceptance/support/wait-until.ts'
import { openFakeServer } from '../../client/test/fake-server.ts'
import { newEnv, openDir, startInTerminal, toCommand } from './run-cli.ts'

const skip = spawnSync('script', ['--version']).status !== 0 && 'needs script of util-linux'
const service = getSharedService()
const base = { scan_type: 'malware', content_length: 1, content_type: '', created_at: '' }
const threat = { ...base, id: '0199a3c5-52f1-7c39-8f0e-6f1d5d0f6a3b', status: 'threat', signals: ['Virus:Test'] }

test('on a terminal there are colours and a bar with files, bytes and rate, which is taken away', {
  skip,
}, async (t) => {
  const cwd = openDir(t)
  writeFileSync(join(cwd, 'large.bin'), '')
  truncateSync(join(cwd, 'large.bin'), 20_000_000)
  writeFileSync(join(cwd, 'small.txt'), 'small')
  const settled: (() => void)[] = []
  const fake = await openFakeServer(t, async () => {
    await new Promise<void>((resolve) => settled.push(resolve))
    return { json: threat }
  })
  const env = newEnv(cwd, { ASSAY_URL: fake.url, ASSAY_API_KEY: 'key' })
  const running = startInTerminal(toCommand('--parallel', '1', 'large.bin', 'small.txt'), env, cwd)
  await waitUntil('the bar', () => /\[#{10,}-*\] +\d+ % +0 of 2 files, 19\.1 MB, [\d.]+ [KM]?B\/s/.test(running.out()))
  await waitUntil('the question', () => settled.length === 1)
  settled.shift()?.()
  await waitUntil('the next question', () => settled.length === 1)
  settled.shift()?.()
  const { code, out } = await running.ended
  assert.equal(code, 1)
  assert(out.includes('\r\x1b[Klarge.bin: \x1b[31mTest FOUND\x1b[0m\r\n'), JSON.stringify(out))
  assert.match(out.slice(out.lastIndexOf('\x1b[K')), /^\x1b\[K(\w+\.\w+: .*\r\n)*\r\n-+ SCAN SUMMARY/)
})

test('NO_COLOR is honoured, and what is redirected has neither colours nor a bar', { skip }, async (t) => {
  const cwd = openDir(t)
  writeFileSync(join(cwd, 'small.txt'), 'small')
  const fake = await openFakeServer(t, () => ({ json: threat }))
  const env = newEnv(cwd, { ASSAY_URL: fake.url, ASSAY_API_KEY: 'key' })
  const plain = await startInTerminal(toCommand('--no-summary', 'small.txt'), { ...env, NO_COLOR: '1' }, cwd).ended
  assert.match(plain.out, /small\.txt: Test FOUND\r\n$/)
  await startInTerminal(`${toCommand('--no-summary', 'small.txt')} > lines.txt 2> bar.txt`, env, cwd).ended
  assert.equal(readFileSync(join(cwd, 'lines.txt'), 'utf8'), 'small.txt: Test FOUND\n')
  assert.equal(readFileSync(join(cwd, 'bar.txt'), 'utf8'), '')
})

test('login asks for address and key, does not show the key, and keeps it from others', { skip }, async (t) => {
  const cwd = openDir(t)
  const { api_key: apiKey } = await service.createAccount()
  const running = startInTerminal(toCommand('login'), newEnv(cwd), cwd)
  await waitUntil('the question for the address', () => running.out().includes('Address of Assay: '))
  running.child.stdin?.write(`${service.url}\r`)
  await waitUntil('the question for the key', () => running.out().includes('API key (not shown): '))
  running.child.stdin?.write(`${apiKey}\r`)
  const { code, out } = await running.ended
  assert.equal(code, 0, out)
  assert(!out.includes(apiKey))
  assert.match(out, /127\.0\.0\.1:\d+ knows this key\. It is stored in .*\/\.config\/assay\/config\.json\./)
  const path = join(cwd, '.config/assay/config.json')
  assert.equal(statSync(path).mode & 0o777, 0o600)
  assert.deepEqual(JSON.parse(readFileSync(path, 'utf8')), { url: service.url, api_key: apiKey })
})

test('Ctrl-C at a question stores nothing, and is exit code 130', { skip }, async (t) => {
  const cwd = openDir(t)
  const running = startInTerminal(toCommand('login', '--url', service.url), newEnv(cwd), cwd)
  await waitUntil('the question for the key', () => running.out().includes('API key (not shown): '))
  running.child.stdin?.write('\x03')
  const { code } = await running.ended
  assert.equal(code, 130)
  assert.throws(() => statSync(join(cwd, '.config')))
})
