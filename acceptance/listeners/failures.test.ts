import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { openFakeClamd } from '../support/fake-clamd.ts'
import {
  type Listeners,
  listenerKey,
  openTalk,
  startListeners,
  talk,
  toIcap,
  toLength,
  toStream,
} from '../support/listeners.ts'
import { alreadyTested } from '../support/scanning.ts'
import { withoutImages } from '../support/start-service.ts'
import { waitUntil } from '../support/wait-until.ts'

const close = 'Connection: close\r\n'
const allow = 'Allow: 204\r\n'

/** A listener whose limit is reached with little content. */
const small = `[[listeners]]\nname = "small"\nkind = "icap"\naddress = "tcp://127.0.0.1:0"
api_key = "${listenerKey}"\non_error = "allow"\nmax_mb = 2\n`

describe('listeners with an engine that fails', { skip: alreadyTested }, () => {
  let dir = ''
  let clamd: Awaited<ReturnType<typeof openFakeClamd>>
  let listeners: Listeners
  before(async () => {
    dir = mkdtempSync(join(tmpdir(), 'assay-listeners-'))
    clamd = await openFakeClamd(join(dir, 'clamd.sock'))
    writeFileSync(join(dir, 'assay.toml'), small)
    listeners = await startListeners({
      ...withoutImages,
      ASSAY_CONFIG: join(dir, 'assay.toml'),
      ASSAY_CLAMD: join(dir, 'clamd.sock'),
      ASSAY_ICAP_ON_ERROR: 'allow',
      ASSAY_CLAMD_LISTEN_ON_FAILURE: 'found',
    })
  })
  after(async () => {
    await listeners.stop()
    await clamd.close()
    rmSync(dir, { recursive: true, force: true })
  })

  const instream = (content: string) => talk(listeners.ports.clamd, 'zINSTREAM\0', toStream(content))
  const respmod = (content: Buffer | string, icap = allow, http = '', service = 'avscan') =>
    talk(listeners.ports.icap, toIcap('RESPMOD', content, { icap: icap + close, http, service }))
  const notScanned = (reason: string) => `stream: Assay.NotScanned.${reason} FOUND`
  const failed = (status: number, reason: string) =>
    new RegExp(`^ICAP/1\\.0 ${status} [^]*X-Infection-Found: .*Threat=Assay\\.NotScanned\\.${reason};\r\n`)

  test('verdicts of the engine are passed on', async () => {
    assert.equal(await instream('good one'), 'stream: OK\0')
    assert.equal(await instream('bad one'), 'stream: Fake.Threat FOUND\0')
    assert.match(await respmod('good two'), /^ICAP\/1\.0 204 /)
    assert.match(await respmod('bad two'), /X-Virus-ID: Fake\.Threat/)
  })

  for (const behaviour of ['closes', 'garbage', 'empty', 'half', 'almost-ok']) {
    test(`an engine that answers with ${behaviour} is never clean and never charged, also with ASSAY_ICAP_ON_ERROR=allow`, async () => {
      const before = await listeners.countCharges()
      assert.equal(await instream(`${behaviour} for clamd`), `${notScanned('EngineFailed')}\0`)
      assert.match(await respmod(`${behaviour} for icap`), failed(500, 'EngineFailed'))
      const coded = await respmod(`${behaviour} for icap`, allow, '', 'avscan-errors')
      assert.match(coded, /^ICAP\/1\.0 500 .*X-Error-Code: engine_failed\r\n.*did not answer/s)
      assert.equal(await listeners.countCharges(), before)
    })
  }

  test('content that cannot be scanned passes unchanged with ASSAY_ICAP_ON_ERROR=allow', async () => {
    const encoded = 'Content-Encoding: br\r\n'
    assert.match(await respmod('packed', allow, encoded), /^ICAP\/1\.0 204 /)
    assert.match(await respmod('packed', 'Preview: 6\r\n', encoded), /^ICAP\/1\.0 204 /)
    const echoed = await respmod('packed', '', encoded)
    assert.match(echoed, /^ICAP\/1\.0 200 OK\r\n.*Encapsulated: res-hdr=0, res-body=41\r\n\r\nHTTP\/1\.1 200 OK\r\n/s)
    assert(echoed.endsWith('\r\n\r\n6\r\npacked\r\n0\r\n\r\n'))
    const coded = await respmod('packed', allow, encoded, 'avscan-errors')
    assert.match(coded, /^ICAP\/1\.0 500 .*X-Error-Code: decode_error\r\n/s)
  })

  test('content over the limit passes completely when content that cannot be scanned is allowed', async () => {
    await waitUntil('the listener with a small limit', () => listeners.findPort('small') > 0)
    const { socket, heard } = openTalk(listeners.findPort('small'))
    let bytes = 0
    socket.removeAllListeners('data').on('data', (chunk) => {
      bytes += chunk.length
    })
    socket.write(toIcap('RESPMOD', 'begin', { icap: close, end: '' }))
    const piece = Buffer.concat([Buffer.from('100000\r\n'), Buffer.alloc(2 ** 20, 'x'), Buffer.from('\r\n')])
    for (let n = 0; n < 12; n++) await new Promise((resolve) => socket.write(piece, resolve))
    socket.write('0\r\n\r\n')
    await waitUntil('the end', () => socket.readableEnded)
    assert.equal(heard(), '')
    assert(bytes > 12 * 2 ** 20 && bytes < 12 * 2 ** 20 + 200_000, `${bytes} bytes came back`)
  })

  test('over the rate limit, without credits, with a restricted or an invalid key a scan gets an error and no charge', async () => {
    const [account] = (await listeners.operate('accounts', 'list')) as { id: string }[]
    const id = account?.id ?? ''
    await listeners.operate('accounts', 'update', id, '--rate', '5/1h')
    await waitUntil(
      'the limit to be reached',
      async () => (await instream('good')) === `${notScanned('RateLimited')}\0`,
    )
    assert.match(await respmod('good'), failed(503, 'RateLimited'))
    assert.match(await respmod('good'), /Retry-After: \d+\r\n/)

    await listeners.operate('accounts', 'update', id, '--rate', '100000/1m')
    const spent = await listeners.countCharges()
    await listeners.operate('accounts', 'update', id, '--credits', String(spent + 1))
    assert.equal(await instream('good the last one'), 'stream: OK\0')
    const broke = notScanned('OutOfCredit')
    assert.equal(await instream('good but one too many'), `${broke}\0`)
    const session = await talk(listeners.ports.clamd, 'zIDSESSION\0zINSTREAM\0', toStream('bad'), 'zPING\0zEND\0')
    assert.equal(session, `1: ${broke}\x002: PONG\0`)
    assert.match(await respmod('good'), failed(500, 'OutOfCredit'))
    // The response comes at the end of the preview, so the client need not send the rest.
    assert.match(await respmod('good', `Preview: 4\r\n${allow}`), failed(500, 'OutOfCredit'))

    await listeners.operate('accounts', 'update', id, '--credits', 'none')
    const [key] = (await listeners.operate('keys', 'list', '--account', id)) as { id: string }[]
    for (const restriction of [
      ['--allow', 'read,submit'],
      ['--kinds', 'nsfw', '--allow', 'none'],
      ['--networks', '192.0.2.0/24', '--kinds', 'none'],
    ]) {
      await listeners.operate('keys', 'set', key?.id ?? '', ...restriction)
      assert.equal(await instream('good'), `${notScanned('KeyRestricted')}\0`)
      assert.match(await respmod('good'), failed(500, 'KeyRestricted'))
    }
    await listeners.operate('keys', 'set', key?.id ?? '', '--networks', '127.0.0.0/8,::1')
    assert.equal(await instream('good here'), 'stream: OK\0')
    assert.equal(await listeners.countCharges(), spent + 2)

    await listeners.operate('accounts', 'suspend', id)
    assert.equal(await instream('good'), `${notScanned('InvalidKey')}\0`)
    assert.match(await respmod('good'), failed(500, 'InvalidKey'))
    await listeners.operate('accounts', 'resume', id)
    assert.equal(await listeners.countCharges(), spent + 2)
  })

  test('a stop waits for running scans and closes idle connections', async () => {
    const [busy, idle] = [openTalk(listeners.ports.clamd), openTalk(listeners.ports.clamd)]
    idle.socket.write('zIDSESSION\0zPING\0')
    busy.socket.write(Buffer.concat([Buffer.from('zIDSESSION\0zINSTREAM\0'), toLength(5), Buffer.from('goo')]))
    await waitUntil('both to be there', () => idle.heard() === '1: PONG\0')
    process.kill(listeners.pid, 'SIGTERM')
    await waitUntil('the idle one to be let go', () => idle.socket.closed)
    busy.socket.write(Buffer.concat([Buffer.from('d '), toLength(0), Buffer.from('zPING\0')]))
    await waitUntil('the busy one to be let go', () => busy.socket.readableEnded)
    assert.equal(busy.heard(), '1: stream: OK\0')
  })
})
