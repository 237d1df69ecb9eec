import assert from 'node:assert/strict'
import { chmodSync, closeSync, existsSync, mkdirSync, openSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { getSharedService } from '../../../acceptance/support/shared-service.ts'
import { findUnusedUrl, newResult } from '../../client/test/fake-server.ts'
import { newEnv, openDir, openFakeCli, runCli } from './run-cli.ts'

const service = getSharedService()
const isRoot = process.getuid?.() === 0
const otherUser = 65534
const result = newResult()

/** A directory with `tree`, which contains this number of files. */
function openTree(t: TestContext, count: number): string {
  const dir = openDir(t)
  mkdirSync(join(dir, 'tree'))
  for (let i = 0; i < count; i++) writeFileSync(join(dir, 'tree', `${i}.txt`), `file ${i}`)
  return dir
}

const assertNoStack = (text: string) => assert.doesNotMatch(text, /^\s+at |Error:/m)

test('a rejected key ends the run and is reported once', async (t) => {
  const cwd = openTree(t, 50)
  const env = newEnv(cwd, { ASSAY_URL: service.url, ASSAY_API_KEY: 'assay_wrong' })
  const { code, out, err } = await runCli(['--no-summary', 'tree'], { cwd, env })
  assert.equal(code, 2)
  assert.equal(out, '')
  assert.match(
    err,
    /^127\.0\.0\.1:\d+ does not accept this API key\. Check that .* neither revoked nor expired\. Files not listed above were not scanned\.\n$/,
  )
})

test('so does an account without credits', async (t) => {
  const cwd = openTree(t, 20)
  const { api_key: apiKey } = await service.createAccount('--credits', '3')
  const env = newEnv(cwd, { ASSAY_URL: service.url, ASSAY_API_KEY: apiKey })
  const { code, out, err } = await runCli(['--no-summary', '--parallel', '1', 'tree'], { cwd, env })
  assert.equal(code, 2)
  assert.equal(out.match(/: OK$/gm)?.length, 3)
  assert.doesNotMatch(out, /ERROR/)
  assert.match(err, /^No credits are left\. Wait for the next period, or ask the operator for more\. Files not listed/)
})

test('a service that cannot be reached, or is not Assay, is reported in a sentence', async (t) => {
  const cwd = openTree(t, 5)
  const env = newEnv(cwd, { ASSAY_URL: await findUnusedUrl(), ASSAY_API_KEY: 'key' })
  const unreachable = await runCli(['--no-summary', 'tree'], { cwd, env })
  assert.equal(unreachable.out, '')
  assert.match(
    unreachable.err,
    /^Cannot reach 127\.0\.0\.1:\d+: the connection was refused\. Check that ASSAY_URL is correct .*\n$/,
  )
  const me = await runCli(['me'], { cwd, env })
  assert.match(me.err, /^assay-scan: Cannot reach .*\n$/)
  const { run } = await openFakeCli(t, () => ({ status: 200, text: '<html>' }), cwd)
  const other = await run('--no-summary', 'tree')
  assert.match(other.err, /a response that is not from Assay\. Check that ASSAY_URL is the address of Assay\./)
  for (const { code, out, err } of [unreachable, me, other]) {
    assert.equal(code, 2)
    assertNoStack(out + err)
  }
})

test('a scan without an answer ends after --timeout', async (t) => {
  const { run } = await openFakeCli(t, () => 'silence', openTree(t, 1))
  const { code, out } = await run('--no-summary', '--timeout', '0.3', 'tree')
  assert.equal(code, 2)
  assert.match(out, /^tree\/0\.txt: 127\.0\.0\.1:\d+ did not answer within 0\.3 s ERROR\n$/)
})

test('a rate limit delays the scans and loses none', async (t) => {
  const limited = { status: 429, headers: { 'retry-after': '0' }, json: { traceId: '00-1' } }
  const { run } = await openFakeCli(t, ({ count }) => (count % 6 < 5 ? limited : { json: result }), openTree(t, 6))
  const { code, out, err } = await run('--no-summary', '--parallel', '1', 'tree')
  assert.equal(code, 0)
  assert.equal(out.match(/: OK$/gm)?.length, 6)
  assert.match(err, /^The rate limit is reached\. Continuing in 0 s\.$/m)
})

test('a scan is repeated after a broken connection, with an idempotency key', async (t) => {
  const { fake, run } = await openFakeCli(t, ({ count }) => (count < 2 ? 'reset' : { json: result }), openTree(t, 1))
  const { code, out } = await run('--no-summary', 'tree')
  assert.deepEqual([code, out], [0, 'tree/0.txt: OK\n'])
  const keys = fake.requests.map(({ headers }) => headers['idempotency-key'])
  assert.equal(keys[0], undefined, 'the first request has no key, which is faster')
  assert(keys[1] !== undefined && keys[1] === keys[2])
})

test('a directory without permission is an error, and the other files are scanned', {
  skip: !isRoot && 'needs a second user',
}, async (t) => {
  const { api_key: apiKey } = await service.createAccount()
  const cwd = openTree(t, 1)
  chmodSync(cwd, 0o755)
  mkdirSync(join(cwd, 'tree/closed'), { mode: 0o700 })
  writeFileSync(join(cwd, 'tree/secret.txt'), 'secret', { mode: 0o600 })
  const env = newEnv(cwd, { ASSAY_URL: service.url, ASSAY_API_KEY: apiKey })
  const { code, out } = await runCli(['--no-summary', 'tree'], { cwd, env, uid: otherUser })
  assert.equal(code, 2)
  assert.deepEqual(out.trimEnd().split('\n').sort(), [
    'tree/0.txt: OK',
    'tree/closed: Permission denied ERROR',
    'tree/secret.txt: Permission denied ERROR',
  ])
})

test('output to a full disk ends the run with a sentence', { skip: !existsSync('/dev/full') }, async (t) => {
  const { fake, start } = await openFakeCli(t, () => ({ json: result }), openTree(t, 30))
  for (const args of [['--parallel', '2', 'tree'], ['--help'], ['completion', 'bash']]) {
    const stdout = openSync('/dev/full', 'w')
    const { code, err } = await start(args, { stdout }).ended
    closeSync(stdout)
    assert.equal(code, 2, args.join(' '))
    assert.match(err, /Cannot write the output: the disk is full\. Free some space, or write the output elsewhere\./)
    assertNoStack(err)
  }
  assert(fake.requests.length < 10, `${fake.requests.length} files were scanned in vain`)
})

test('the run ends when the reader of its output closes it', async (t) => {
  const { fake, start } = await openFakeCli(t, () => ({ json: result }), openTree(t, 200))
  const running = start(['--parallel', '1', 'tree'])
  running.child.stdout?.once('data', () => running.child.stdout?.destroy())
  const { code, err } = await running.ended
  assert.equal(code, 2)
  assert.match(err, /^The reader of the output has closed it\. /)
  assert(fake.requests.length < 200)
})

test('a mistake on the command line is reported, with exit code 2', async (t) => {
  const cwd = openDir(t)
  const env = newEnv(cwd, { ASSAY_URL: 'http://127.0.0.1:1', ASSAY_API_KEY: 'key' })
  const cases: [args: string[], message: RegExp][] = [
    [[], /^assay-scan: Specify what to scan: /],
    [['--no-such', 'x'], /^assay-scan: Unknown option '--no-such'\. See assay-scan --help\.\n$/],
    [['--parallel', 'many', 'x'], /--parallel must be a whole number from 1 to 256, not many\./],
    [['--wait', 'x'], /--wait requires --submit/],
    [['--callback', 'http://x/', 'x'], /--callback requires --submit/],
    [['-', '-'], /can be scanned only once/],
    [['watch'], /Specify one directory/],
    [['watch', 'missing'], /Cannot watch missing: No such file or directory\./],
    [['watch', '--delete-threats', '--move-threats', 'a', '.'], /cannot be combined/],
    [['completion', 'cmd'], /Specify a shell: assay-scan completion bash\|zsh\|fish\./],
    [['result'], /Specify the ids/],
  ]
  for (const [args, message] of cases) {
    const { code, out, err } = await runCli(args, { cwd, env })
    assert.deepEqual([code, out], [2, ''], args.join(' '))
    assert.match(err, message)
    assertNoStack(err)
  }
})
