import assert from 'node:assert/strict'
import { copyFileSync, mkdirSync, symlinkSync, truncateSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { eicar } from '../../../acceptance/support/archives.ts'
import { openReceiver } from '../../../acceptance/support/receiver.ts'
import { lacksClamAv } from '../../../acceptance/support/scanning.ts'
import { getSharedService } from '../../../acceptance/support/shared-service.ts'
import { waitUntil } from '../../../acceptance/support/wait-until.ts'
import { newResult, scanId } from '../../client/test/fake-server.ts'
import { newEnv, openDir, openFakeCli, runCli } from './run-cli.ts'

const service = getSharedService()
const lacking = await lacksClamAv(service.url)
const card = fileURLToPath(new URL('../../../docs/test-images/pornography.png', import.meta.url))
const origin = process.env.ASSAY_TEST_ORIGIN ?? ''

describe('assay-scan with the real service', () => {
  const cwd = openDir({ after })
  let env = newEnv(cwd)
  before(async () => {
    const { api_key: apiKey } = await service.createAccount()
    env = newEnv(cwd, { ASSAY_URL: service.url, ASSAY_API_KEY: apiKey })
    mkdirSync(join(cwd, 'tree/sub/.hidden'), { recursive: true })
    writeFileSync(join(cwd, 'tree/good.txt'), 'good morning')
    writeFileSync(join(cwd, 'tree/sub/.hidden/eicar.com'), eicar)
    writeFileSync(join(cwd, 'tree/empty.txt'), '')
    symlinkSync('..', join(cwd, 'tree/sub/loop'))
    symlinkSync('/etc/passwd', join(cwd, 'tree/outside'))
    mkdirSync(join(cwd, 'clean'))
    writeFileSync(join(cwd, 'clean/one.txt'), 'one')
    writeFileSync(join(cwd, 'clean/two.log'), Buffer.alloc(600_000, 'two '))
  })
  const run = (args: string[], input?: string | Buffer) =>
    runCli(args, { cwd, env, ...(input !== undefined && { input }) })
  const sorted = (text: string) => text.trimEnd().split('\n').sort()

  test('a whole tree is scanned without following links, and a threat gives exit code 1', {
    skip: lacking,
  }, async () => {
    const { code, out, err } = await run(['tree'])
    assert.equal(code, 1)
    assert.equal(err, '')
    const [lines = '', summary = ''] = out.split('\n----------- SCAN SUMMARY -----------\n')
    assert.deepEqual(sorted(lines), [
      'tree/empty.txt: Empty file',
      'tree/good.txt: OK',
      'tree/sub/.hidden/eicar.com: Eicar-Test-Signature FOUND',
    ])
    for (const line of [
      'directories: 3',
      'files: 2',
      'Infected files: 1',
      'Empty files: 1',
      'Skipped: 2',
      'Data scanned: 80 B',
    ]) {
      assert(summary.includes(line), `${line} in ${summary}`)
    }
    assert.match(summary, /Credits left: [\d,]+ of [\d,]+\nTime: \d+\.\d{3} sec \(0 m \d+ s\)\n$/)
  })

  test('clean files give exit code 0 and one line each', async () => {
    const { code, out } = await run(['--no-summary', '--parallel', '1', 'clean'])
    assert.equal(code, 0)
    assert.deepEqual(sorted(out), ['clean/one.txt: OK', 'clean/two.log: OK'])
  })

  test('--infected hides clean files only', { skip: lacking }, async () => {
    const { code, out } = await run(['-i', '--no-summary', 'clean', 'tree', 'missing'])
    assert.equal(code, 1)
    assert.deepEqual(sorted(out), [
      'missing: No such file or directory ERROR',
      'tree/sub/.hidden/eicar.com: Eicar-Test-Signature FOUND',
    ])
  })

  test('an error without a threat gives exit code 2', async () => {
    const { code, out } = await run(['clean/one.txt', 'missing', 'nothing*.like'])
    assert.equal(code, 2)
    assert.match(out, /^clean\/one\.txt: OK$/m)
    assert.match(out, /^nothing\*\.like: No file matches ERROR$/m)
    assert.match(out, /^Total errors: 2$/m)
  })

  test('patterns that the shell did not expand are expanded', { skip: lacking }, async () => {
    assert.deepEqual(sorted((await run(['--no-summary', 'clean/*.txt', 'tree/[!a-f]*.tx?'])).out), [
      'clean/one.txt: OK',
      'tree/good.txt: OK',
    ])
    assert.deepEqual(sorted((await run(['--no-summary', '**/*.txt'])).out), [
      'clean/one.txt: OK',
      'tree/empty.txt: Empty file',
      'tree/good.txt: OK',
    ])
    assert.deepEqual(sorted((await run(['--no-summary', 'tree/sub/.h*'])).out), [
      'tree/sub/.hidden/eicar.com: Eicar-Test-Signature FOUND',
    ])
  })

  test('standard input is scanned under the given name', { skip: lacking }, async () => {
    assert.deepEqual(await run(['--no-summary', '-'], eicar), {
      code: 1,
      out: 'stdin: Eicar-Test-Signature FOUND\n',
      err: '',
    })
    const large = await run(['--json', '--name', 'mail.eml', '-'], Buffer.alloc(3_000_000, 'mail '))
    const result = JSON.parse(large.out)
    assert.deepEqual([result.path, result.status, result.content_length], ['mail.eml', 'clean', 3_000_000])
    assert.equal(result.content_name, 'mail.eml')
    const empty = await run(['--no-summary', '-'], '')
    assert.equal(empty.code, 2)
    assert.equal(empty.out, 'stdin: No data received ERROR\n')
  })

  test('the service downloads URLs', async () => {
    const { code, out } = await run(['--no-summary', `${origin}/one.png`, 'http://192.0.2.1/'])
    assert.equal(code, 2)
    assert.match(out, /^http:\/\/127\.9\.9\.9:\d+\/one\.png: OK$/m)
    assert.match(out, /^http:\/\/192\.0\.2\.1\/: .+ ERROR$/m)
  })

  test('--nsfw scans images and skips other files unless they are named', async () => {
    mkdirSync(join(cwd, 'pictures'), { recursive: true })
    copyFileSync(card, join(cwd, 'pictures/card.bin'))
    writeFileSync(join(cwd, 'pictures/notes.txt'), 'no picture')
    const { code, out } = await run(['--nsfw', 'pictures'])
    assert.equal(code, 1)
    assert.match(out, /^pictures\/card\.bin: pornography FOUND\n\n/)
    assert.match(out, /Unsafe images: 1\nSkipped: 1 /)
    const named = await run(['--nsfw', '--no-summary', 'pictures/notes.txt'])
    assert.deepEqual(
      [named.code, named.out],
      [2, 'pictures/notes.txt: file must be a JPEG, PNG, GIF or WebP image ERROR\n'],
    )
  })

  test('--json prints one line per file with the whole result', { skip: lacking }, async () => {
    const { code, out, err } = await run(['--json', 'tree', 'missing'])
    assert.deepEqual([code, err], [1, ''])
    const lines = out
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line))
    const byPath = Object.fromEntries(lines.map((line) => [line.path, line]))
    assert.equal(lines.length, 6)
    assert.deepEqual(byPath.missing, {
      path: 'missing',
      status: 'error',
      reason: 'No such file or directory',
      code: 'ENOENT',
    })
    assert.deepEqual(byPath['tree/empty.txt'], { path: 'tree/empty.txt', status: 'empty' })
    assert.deepEqual(byPath['tree/outside'], { path: 'tree/outside', status: 'skipped', reason: 'Symbolic link' })
    const threat = byPath['tree/sub/.hidden/eicar.com']
    assert.deepEqual([threat.status, threat.signals], ['threat', ['Virus:Eicar-Test-Signature']])
    assert.match(threat.metadata.hash_sha256, /^[0-9a-f]{64}$/)
  })

  test('--submit prints ids, result shows their results, and --wait waits', { skip: lacking }, async () => {
    const submitted = await run(['--submit', '--no-summary', 'tree/sub/.hidden/eicar.com'])
    assert.equal(submitted.code, 0)
    const job = /^tree\/sub\/\.hidden\/eicar\.com: ([0-9a-f-]{36}) SUBMITTED\n$/.exec(submitted.out)?.[1] ?? ''
    const waited = await run(['result', '--wait', job])
    assert.deepEqual([waited.code, waited.out], [1, `${job}: Eicar-Test-Signature FOUND\n`])
    const unknown = await run(['result', scanId])
    assert.deepEqual([unknown.code, unknown.out], [2, `${scanId}: No such scan ERROR\n`])
    const both = await run(['--submit', '--wait', '--no-summary', 'tree/sub/.hidden/eicar.com', `${origin}/one.png`])
    assert.equal(both.code, 1)
    assert.deepEqual(sorted(both.out), [
      `${origin}/one.png: OK`,
      'tree/sub/.hidden/eicar.com: Eicar-Test-Signature FOUND',
    ])
  })

  test('--callback sends the result to the URL', async (t) => {
    const receiver = await openReceiver()
    t.after(receiver.close)
    const { code } = await run(['--submit', '--callback', `${receiver.url}/hook`, 'clean/one.txt'])
    assert.equal(code, 0)
    await waitUntil('the webhook', () => receiver.at('/hook').length > 0)
  })
})

test('a file over the synchronous limit is scanned in the background, and one over the background limit is not sent', async (t) => {
  const { cwd, fake, run } = await openFakeCli(t, ({ path }) => ({
    json: path.endsWith('/submit/file') ? { id: scanId } : newResult(),
  }))
  for (const [name, megabytes] of Object.entries({ 'small.png': 8, 'large.png': 9, 'huge.png': 17 })) {
    writeFileSync(join(cwd, name), '\x89PNG', 'latin1')
    truncateSync(join(cwd, name), megabytes * 1024 * 1024)
  }
  const { code, out } = await run('--nsfw', '--no-summary', '--parallel', '1', 'small.png', 'large.png', 'huge.png')
  assert.equal(code, 2)
  assert.equal(out, 'small.png: OK\nlarge.png: OK\nhuge.png: Larger than 16 MB ERROR\n')
  assert.deepEqual(
    fake.requests.map(({ path }) => path),
    ['/v1/nsfw/images/scan/file', '/v1/nsfw/images/submit/file', `/v1/nsfw/images/${scanId}?wait=30`],
  )
})
