import assert from 'node:assert/strict'
import { execFile, spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { chmodSync, existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { eicarMember, newTar } from './archives.ts'
import { readCodeBlocks } from './code-blocks.ts'
import { findFreePort } from './free-port.ts'
import type { Listeners } from './listeners.ts'
import { waitUntil } from './wait-until.ts'

const squid = '/usr/sbin/squid'
/** The reason to skip tests with Squid, or false. */
export const lacksSquid = !existsSync(squid) && 'Squid is not installed'

const large = randomBytes(10 * 2 ** 20)
const filler = { name: 'filler.bin', data: large }
const bodies: Record<string, Buffer> = {
  '/small.txt': Buffer.from('Dear Sir or Madam\n'),
  '/small.tar': newTar([eicarMember]),
  '/large.bin': large,
  '/large.tar': newTar([filler, eicarMember]),
}

/** Downloads through Squid, which asks the ICAP listener at `port`. Stops the service at the end. */
export function testSquid(subject: { listeners(): Listeners; port(): number }) {
  const origin = createServer((request, response) => {
    const body = bodies[new URL(request.url ?? '', 'http://origin').pathname] ?? Buffer.alloc(0)
    response.writeHead(200, { 'content-length': body.length, 'content-type': 'application/octet-stream' }).end(body)
  })
  let dir = ''
  let proxy = ''
  let end = async () => {}

  before(async () => {
    await new Promise<void>((resolve) => origin.listen(0, '127.0.0.1', resolve))
    dir = mkdtempSync(join(tmpdir(), 'assay-squid-'))
    chmodSync(dir, 0o777)
    const port = await findFreePort()
    proxy = `http://127.0.0.1:${port}`
    writeFileSync(join(dir, 'squid.conf'), toConfig(port, subject.port(), dir))
    const child = spawn(squid, ['-N', '-f', join(dir, 'squid.conf')], { stdio: 'ignore' })
    const ended = new Promise((resolve) => child.once('close', resolve))
    end = async () => {
      child.kill('SIGKILL')
      await ended
    }
    await waitUntil('Squid to serve', async () => (await download('/small.txt')).status === '200')
  })
  after(async () => {
    await end()
    origin.close()
    rmSync(dir, { recursive: true, force: true })
  })

  /** The origin server is in this process, which must not wait for curl. */
  function download(path: string): Promise<{ code: number; body: Buffer; status: string }> {
    const url = `http://127.0.0.1:${(origin.address() as AddressInfo).port}${path}`
    const args = ['-sS', '--noproxy', '', '-x', proxy, '--max-time', '120', '-w', '%{stderr}%{http_code}', url]
    return new Promise((resolve) =>
      execFile('curl', args, { encoding: 'buffer', maxBuffer: 2 ** 28 }, (error, body, stderr) =>
        resolve({ code: error === null ? 0 : Number(error.code), body, status: stderr.toString().slice(-3) }),
      ),
    )
  }

  test('clean content arrives, whatever its size', async () => {
    for (const path of ['/small.txt', '/large.bin']) {
      const { code, body, status } = await download(path)
      assert.deepEqual([code, status], [0, '200'], path)
      assert.ok(body.equals(bodies[path] as Buffer), path)
    }
  })

  test('a small threat becomes a page, and a large one an incomplete download of a few bytes', async () => {
    const small = await download('/small.tar')
    assert.deepEqual([small.code, small.status], [0, '403'])
    assert.match(small.body.toString(), /Blocked: threat found/)
    const { code, body } = await download('/large.tar')
    assert.notEqual(code, 0, 'curl must notice that the download is incomplete')
    assert.ok(body.length <= 3200, `${body.length} bytes arrived`)
    assert.ok((bodies['/large.tar'] as Buffer).subarray(0, body.length).equals(body))
  })

  test('nothing arrives while the listener cannot scan, or is stopped', async () => {
    const [account] = (await subject.listeners().operate('accounts', 'list')) as { id: string }[]
    await subject.listeners().operate('accounts', 'suspend', account?.id ?? '')
    assert.match((await download('/small.txt')).status, /^5/)
    await subject.listeners().stop()
    const { status, body } = await download('/small.txt')
    assert.match(status, /^5/)
    assert.doesNotMatch(body.toString(), /Dear Sir/)
  })
}

/** The lines of docs/listeners.md, and what Squid needs to run beside other things. */
function toConfig(port: number, icapPort: number, dir: string): string {
  const documented = readCodeBlocks('docs/listeners.md').find(({ text }) => text.startsWith('icap_enable on'))
  return [
    `http_port 127.0.0.1:${port}`,
    'http_access allow all',
    'cache deny all',
    'shutdown_lifetime 0 seconds',
    `pid_filename ${dir}/squid.pid`,
    'access_log none',
    `cache_log ${dir}/cache.log`,
    `coredump_dir ${dir}`,
    documented?.text.replaceAll('1344', String(icapPort)) ?? '',
  ].join('\n')
}
