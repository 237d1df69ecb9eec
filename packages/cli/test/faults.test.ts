import assert from 'node:assert/strict'
import { chmodSync, closeSync, existsSync, mkdirSync, openSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { getSharedService } from '../../../acceptance/support/shared-service.ts'
import { findUnusedUrl, openFakeServer } from '../../client/test/fake-server.ts'
import { newEnv, openDir, runCli, startCli } from './run-cli.ts'

const service = getSharedService()
const isRoot = process.getuid?.() === 0
const nobody = 65534
const result = {
  ...{ id: '0199a3c5-52f1-7c39-8f0e-6f1d5d0f6a3b', scan_type: 'malware', status: 'clean' },
  ...{ content_length: 1, content_type: '', created_at: '' },
}

/** As many files as there are numbers. */
function newTree(t: Parameters<typeof openDir>[0], count: number): string {
  const dir = openDir(t)
  mkdirSync(join(dir, 'tree'))
  for (let i = 0; i < count; i++) writeFileSync(join(dir, 'tree', `${i}.txt`), `file ${i}`)
  return dir
}

const noStack = (text: string) => assert.doesNotMatch(text, /^\s+at |Error:/m)

test('a wrong key is told once, and nothing more is tried', async (t) => {
  const cwd = newTree(t, 50)
  const env = newEnv(cwd, { ASSAY_URL: service.url, ASSAY_API_KEY: 'assay_wrong' })
  const { code, out, err } = await runCli(['--no-summary', 'tree'], { cwd, env })
  assert.equal(code, 2)
  assert.match(
    out,
    /^tree\/\d+\.txt: 127\.0\.0\.1:\d+ does not accept this API key\. Check that the key is complete, and neither revoked nor expired ERROR\n$/,
  )
  assert.equal(err, 'Stopped: the rest would fare the same. What is not listed above was not scanned.\n')
})

test('so is an account without credits', async (t) => {
  const cwd = newTree(t, 20)
  const { api_key: apiKey } = await service.createAccount('--credits', '3')
  const env = newEnv(cwd, { ASSAY_URL: service.url, ASSAY_API_KEY: apiKey })
  const { code, out, err } = await runCli(['--no-summary', '--parallel', '1', 'tree'], { cwd, env })
  assert.equal(code, 2)
  assert.equal(out.match(/: OK$/gm)?.length, 3)
  assert.match(out, /: No credits are left\. Wait for the next period, or ask the operator for more ERROR\n$/)
  assert.match(err, /^Stopped: /)
})

test('a service that is not there, or is not Assay, is a sentence', async (t) => {
  const cwd = newTree(t, 5)
  const down = newEnv(cwd, { ASSAY_URL: await findUnusedUrl(), ASSAY_API_KEY: 'key' })
  const nobodyHome = await runCli(['--no-summary', 'tree'], { cwd, env: down })
  assert.equal(nobodyHome.code, 2)
  assert.match(
    nobodyHome.out,
    /^tree\/\d\.txt: Cannot reach 127\.0\.0\.1:\d+: the connection was refused\. Check that ASSAY_URL is correct and that the service is running ERROR\n$/,
  )
  const fake = await openFakeServer(t, () => ({ status: 200, text: '<html>' }))
  const other = await runCli(['--no-summary', 'tree'], {
    cwd,
    env: newEnv(cwd, { ASSAY_URL: fake.url, ASSAY_API_KEY: 'key' }),
  })
  assert.equal(other.code, 2)
  assert.match(other.out, /sent a response that is not from Assay\. Check that ASSAY_URL is the address of Assay ERROR/)
  const me = await runCli(['me'], { cwd, env: down })
  assert.equal(me.code, 2)
  assert.match(me.err, /^assay-scan: Cannot reach .*\n$/)
  for (const { out, err } of [nobodyHome, other, me]) noStack(out + err)
})

test('a service that does not answer is given up after --timeout', async (t) => {
  const cwd = newTree(t, 1)
  const fake = await openFakeServer(t, () => 'silence')
  const env = newEnv(cwd, { ASSAY_URL: fake.url, ASSAY_API_KEY: 'key' })
  const { code, out } = await runCli(['--no-summary', '--timeout', '0.3', 'tree'], { cwd, env })
  assert.equal(code, 2)
  assert.match(out, /^tree\/0\.txt: 127\.0\.0\.1:\d+ did not answer within 0\.3 s ERROR\n$/)
})

test('a rate that is used up makes it slower, and loses nothing', async (t) => {
  const cwd = newTree(t, 6)
  const fake = await openFakeServer(t, ({ count }) =>
    count % 6 < 5 ? { status: 429, headers: { 'retry-after': '0' }, json: { traceId: '00-1' } } : { json: result },
  )
  const env = newEnv(cwd, { ASSAY_URL: fake.url, ASSAY_API_KEY: 'key' })
  const { code, out, err } = await runCli(['--no-summary', '--parallel', '1', 'tree'], { cwd, env })
  assert.equal(code, 0)
  assert.equal(out.match(/: OK$/gm)?.length, 6)
  assert.match(err, /^The rate of this key is used up\. Going on in 0 s\.$/m)
})

test('a connection that breaks is made up for, and the service is asked not to charge the repeats', async (t) => {
  const cwd = newTree(t, 1)
  const fake = await openFakeServer(t, ({ count }) => (count < 2 ? 'reset' : { json: result }))
  const env = newEnv(cwd, { ASSAY_URL: fake.url, ASSAY_API_KEY: 'key' })
  const { code, out } = await runCli(['--no-summary', 'tree'], { cwd, env })
  assert.deepEqual([code, out], [0, 'tree/0.txt: OK\n'])
  const keys = fake.requests.map(({ headers }) => headers['idempotency-key'])
  assert.equal(keys[0], undefined, 'the first is without, which is faster')
  assert(keys[1] !== undefined && keys[1] === keys[2])
})

test('a directory without permission is an error of its own, and the rest is scanned', {
  skip: !isRoot && 'needs a second user',
}, async (t) => {
  const { api_key: apiKey } = await service.createAccount()
  const cwd = newTree(t, 1)
  chmodSync(cwd, 0o755)
  mkdirSync(join(cwd, 'tree/closed'), { mode: 0o700 })
  writeFileSync(join(cwd, 'tree/secret.txt'), 'secret', { mode: 0o600 })
  const env = newEnv(cwd, { ASSAY_URL: service.url, ASSAY_API_KEY: apiKey })
  const { code, out } = await runCli(['--no-summary', 'tree'], { cwd, env, uid: nobody })
  assert.equal(code, 2)
  assert.deepEqual(out.trimEnd().split('\n').sort(), [
    'tree/0.txt: OK',
    'tree/closed: Permission denied ERROR',
    'tree/secret.txt: Permission denied ERROR',
  ])
})

test('a full disk behind the output ends the run, with a sentence', { skip: !existsSync('/dev/full') }, async (t) => {
  const cwd = newTree(t, 30)
  const fake = await openFakeServer(t, () => ({ json: result }))
  const env = newEnv(cwd, { ASSAY_URL: fake.url, ASSAY_API_KEY: 'key' })
  for (const args of [['--parallel', '2', 'tree'], ['--help'], ['completion', 'bash']]) {
    const stdout = openSync('/dev/full', 'w')
    const { code, err } = await runCli(args, { cwd, env, stdout })
    closeSync(stdout)
    assert.equal(code, 2, args.join(' '))
    assert.match(err, /The output cannot be written: the disk is full\. Make room, or write it elsewhere\./)
    noStack(err)
  }
  assert(fake.requests.length < 10, `${fake.requests.length} files were scanned for nobody`)
})

test('when nobody reads the output any more, the run ends', async (t) => {
  const cwd = newTree(t, 200)
  const fake = await openFakeServer(t, () => ({ json: result }))
  const env = newEnv(cwd, { ASSAY_URL: fake.url, ASSAY_API_KEY: 'key' })
  const running = startCli(['--parallel', '1', 'tree'], { cwd, env })
  running.child.stdout?.once('data', () => running.child.stdout?.destroy())
  const { code, err } = await running.ended
  assert.equal(code, 2)
  assert.match(err, /^Nobody reads the output any more\. /)
  assert(fake.requests.length < 200)
})

test('what is typed wrong is told, with exit code 2', async (t) => {
  const cwd = openDir(t)
  const env = newEnv(cwd, { ASSAY_URL: 'http://127.0.0.1:1', ASSAY_API_KEY: 'key' })
  const said = async (...args: string[]) => {
    const { code, out, err } = await runCli(args, { cwd, env })
    assert.deepEqual([code, out], [2, ''], args.join(' '))
    noStack(err)
    return err
  }
  assert.match(await said(), /^assay-scan: Name what to scan: /)
  assert.match(await said('--no-such', 'x'), /^assay-scan: Unknown option '--no-such'\. See assay-scan --help\.\n$/)
  assert.match(await said('--parallel', 'many', 'x'), /--parallel must be a whole number from 1 to 256, not many\./)
  assert.match(await said('--wait', 'x'), /--wait goes with --submit/)
  assert.match(await said('--callback', 'http://x/', 'x'), /--callback goes with --submit/)
  assert.match(await said('-', '-'), /can be scanned once only/)
  assert.match(await said('watch'), /Name one directory/)
  assert.match(await said('watch', 'missing'), /missing cannot be watched: No such file or directory\./)
  assert.match(await said('watch', '--delete-threats', '--move-threats', 'a', '.'), /Choose one/)
  assert.match(await said('completion', 'cmd'), /Name the shell: assay-scan completion bash\|zsh\|fish\./)
  assert.match(await said('result'), /Name the ids/)
})
