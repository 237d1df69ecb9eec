import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { readFileSync, statSync, truncateSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { getSharedService } from '../../../acceptance/support/shared-service.ts'
import { waitUntil } from '../../../acceptance/support/wait-until.ts'
import { newResult } from '../../client/test/fake-server.ts'
import { newEnv, openDir, openFakeCli, startInTerminal, toCommand } from './run-cli.ts'

const skip = spawnSync('script', ['--version']).status !== 0 && 'needs script of util-linux'
const service = getSharedService()
const threat = newResult('threat', ['Virus:Test'])

test('a terminal shows colours and a progress bar, which is removed at the end', {
  skip,
}, async (t) => {
  const responses: (() => void)[] = []
  const { cwd, env } = await openFakeCli(t, async () => {
    await new Promise<void>((resolve) => responses.push(resolve))
    return { json: threat }
  })
  writeFileSync(join(cwd, 'large.bin'), '')
  truncateSync(join(cwd, 'large.bin'), 20_000_000)
  writeFileSync(join(cwd, 'small.txt'), 'small')
  const running = startInTerminal(toCommand('--parallel', '1', 'large.bin', 'small.txt'), env, cwd)
  await waitUntil('the bar', () => /\[#{10,}-*\] +\d+ % +0 of 2 files, 19\.1 MB, [\d.]+ [KM]?B\/s/.test(running.out()))
  await waitUntil('the first request', () => responses.length === 1)
  responses.shift()?.()
  await waitUntil('the second request', () => responses.length === 1)
  responses.shift()?.()
  const { code, out } = await running.ended
  assert.equal(code, 1)
  assert(out.includes('\r\x1b[Klarge.bin: \x1b[31mTest FOUND\x1b[0m\r\n'), JSON.stringify(out))
  assert.match(out.slice(out.lastIndexOf('\x1b[K')), /^\x1b\[K(\w+\.\w+: .*\r\n)*\r\n-+ SCAN SUMMARY/)
})

test('NO_COLOR disables colours, and redirected output has neither colours nor a bar', { skip }, async (t) => {
  const { cwd, env } = await openFakeCli(t, () => ({ json: threat }))
  writeFileSync(join(cwd, 'small.txt'), 'small')
  const plain = await startInTerminal(toCommand('--no-summary', 'small.txt'), { ...env, NO_COLOR: '1' }, cwd).ended
  assert.match(plain.out, /small\.txt: Test FOUND\r\n$/)
  await startInTerminal(`${toCommand('--no-summary', 'small.txt')} > lines.txt 2> bar.txt`, env, cwd).ended
  assert.equal(readFileSync(join(cwd, 'lines.txt'), 'utf8'), 'small.txt: Test FOUND\n')
  assert.equal(readFileSync(join(cwd, 'bar.txt'), 'utf8'), '')
})

test('login asks for address and key, hides the key, and stores both for the owner only', { skip }, async (t) => {
  const cwd = openDir(t)
  const { api_key: apiKey } = await service.createAccount()
  const running = startInTerminal(toCommand('login'), newEnv(cwd), cwd)
  await waitUntil('the prompt for the address', () => running.out().includes('Address of Assay: '))
  running.child.stdin?.write(`${service.url}\r`)
  await waitUntil('the prompt for the key', () => running.out().includes('API key (hidden): '))
  running.child.stdin?.write(`${apiKey}\r`)
  const { code, out } = await running.ended
  assert.equal(code, 0, out)
  assert(!out.includes(apiKey))
  assert.match(
    out,
    /127\.0\.0\.1:\d+ accepts this API key\. Address and key are stored in .*\/\.config\/assay\/config\.json\./,
  )
  const path = join(cwd, '.config/assay/config.json')
  assert.equal(statSync(path).mode & 0o777, 0o600)
  assert.deepEqual(JSON.parse(readFileSync(path, 'utf8')), { url: service.url, api_key: apiKey })
})

test('Ctrl-C at a prompt stores nothing and gives exit code 130', { skip }, async (t) => {
  const cwd = openDir(t)
  const running = startInTerminal(toCommand('login', '--url', service.url), newEnv(cwd), cwd)
  await waitUntil('the prompt for the key', () => running.out().includes('API key (hidden): '))
  running.child.stdin?.write('\x03')
  const { code } = await running.ended
  assert.equal(code, 130)
  assert.throws(() => statSync(join(cwd, '.config')))
})
