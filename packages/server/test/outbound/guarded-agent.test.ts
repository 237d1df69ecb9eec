import assert from 'node:assert/strict'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { type AddressInfo, connect, createServer } from 'node:net'
import { describe, type TestContext, test } from 'node:test'
import { createServer as createTlsServer, getCACertificates, setDefaultCACertificates } from 'node:tls'
import { waitUntil } from '../../../../acceptance/support/wait-until.ts'
import { assertFailed, getContent, newFetching, shortLimits } from './fetching.ts'
import { dialled, newAnswer, openOrigin } from './origins.ts'

const content = newAnswer('200 OK\nContent-Length: 5', 'hello')
const readCertificate = (name: string) => readFileSync(new URL(`certificates/${name}`, import.meta.url), 'utf8')
const certificate = readCertificate('origin.crt')

describe('a name', () => {
  test('is resolved once and its checked address dialled, so a later change of the address has no effect', async (t) => {
    const origin = await openOrigin(t, (socket) => socket.end(content))
    const canary = await openOrigin(t, (socket) => socket.end(content), { host: '127.0.0.1', port: origin.port })
    let asked = 0
    const rebind = () => {
      asked += 1
      return [asked === 1 ? '127.0.0.2' : '127.0.0.1']
    }
    const { fetch } = newFetching(t, { names: { 'rebind.test': rebind } })
    getContent(await fetch(`http://rebind.test:${origin.port}/`))
    assert.equal(asked, 1)
    assert.match(origin.heard[0] ?? '', /host: rebind\.test/i)
    assertFailed(await fetch(`http://rebind.test:${origin.port}/`), 'DownloadFailed', /not (public|lead to a public)/)
    assert.equal(canary.heard.length, 0)
  })

  test('is resolved and checked again at a redirect to itself', async (t) => {
    const origin = await openOrigin(t, (socket) => socket.end(newAnswer('302 Found\nLocation: /again')))
    const answers = ['127.0.0.2', '127.0.0.1']
    const { fetch } = newFetching(t, { names: { 'rebind.test': () => [answers.shift() ?? ''] } })
    assertFailed(await fetch(`http://rebind.test:${origin.port}/`), 'DownloadFailed', /not (public|lead to a public)/)
    assert.equal(origin.heard.length, 1)
  })

  test('whose first addresses do not connect is reached at the next', async (t) => {
    const origin = await openOrigin(t, (socket) => socket.end(content))
    const names = { 'many.test': () => ['127.0.0.3', '127.0.0.4', '127.0.0.5', '127.0.0.2'] }
    const { fetch } = newFetching(t, { names, allowed: ['127.0.0.0/29'] })
    getContent(await fetch(`http://many.test:${origin.port}/`))
  })

  test('with a thousand addresses is tried at a few', async (t) => {
    const names = { 'many.test': () => Array.from({ length: 1_000 }, () => '127.0.0.2') }
    const { fetch } = newFetching(t, { names })
    const before = dialled.length
    assertFailed(await fetch('http://many.test:3/'), 'DownloadFailed', /refused/)
    assert.equal(dialled.length - before, 6)
  })

  test('without an address ends in DownloadFailed', async (t) => {
    const { fetch } = newFetching(t, { names: {} })
    assertFailed(await fetch('http://nobody.test/'), 'DownloadFailed', /does not lead to a public address/)
  })
})

test('a connection that ends at another address than the dialled one is closed before any request', async (t) => {
  const canary = await openOrigin(t, (socket) => socket.end(content), { host: '127.0.0.1' })
  // The kernel takes 0.0.0.0 for loopback, and says so only when the connection stands.
  const { fetch } = newFetching(t, { allowed: ['0.0.0.0/32'] })
  for (const scheme of ['http', 'https']) {
    assertFailed(await fetch(`${scheme}://0.0.0.0:${canary.port}/`), 'DownloadFailed', /not (public|lead to a public)/)
  }
  await waitUntil('the connections are ended', () => canary.countOpen() === 0)
  assert.deepEqual(canary.heard, ['', ''])
})

describe('over TLS', () => {
  const openTlsOrigin = (t: TestContext) =>
    openOrigin(t, (socket) => socket.end(content), {
      server: createTlsServer({ cert: certificate, key: readCertificate('origin.key') }),
    })
  const names = { 'good.test': () => ['127.0.0.2'], 'other.test': () => ['127.0.0.2'] }
  const trusted = getCACertificates('default')

  test('a certificate without a trusted issuer ends in DownloadFailed before any request', async (t) => {
    const origin = await openTlsOrigin(t)
    const { fetch } = newFetching(t, { names })
    assertFailed(await fetch(`https://good.test:${origin.port}/`), 'DownloadFailed', /could not be verified/)
    assert.deepEqual(origin.heard.join(''), '')
  })

  test('a certificate for another name ends in DownloadFailed, the right one for name and address does not', async (t) => {
    setDefaultCACertificates([...trusted, certificate])
    t.after(() => setDefaultCACertificates(trusted))
    const origin = await openTlsOrigin(t)
    const { fetch } = newFetching(t, { names, allowed: ['127.0.0.2/31'] })
    assertFailed(await fetch(`https://other.test:${origin.port}/`), 'DownloadFailed', /for another name/)
    assert.deepEqual(origin.heard.join(''), '')
    for (const host of ['good.test', 'GOOD.test.', '127.0.0.2']) {
      assert.equal(getContent(await fetch(`https://${host}:${origin.port}/`)).whole?.toString(), 'hello', host)
    }
  })

  test('a host without TLS ends in DownloadFailed', async (t) => {
    const origin = await openOrigin(t, () => {})
    const { fetch } = newFetching(t, { limits: { connectMs: 1_000 } })
    // It takes the greeting for a request without end.
    assertFailed(await fetch(`https://127.0.0.2:${origin.port}/`), 'DownloadFailed', /complete a connection in time/)
    await waitUntil('the origin sees the end', () => origin.countOpen() === 0)
    const talking = createServer((socket) => socket.on('error', () => {}).end(content)).listen(0, '127.0.0.2')
    t.after(() => talking.close())
    await once(talking, 'listening')
    const { port } = talking.address() as AddressInfo
    assertFailed(await fetch(`https://127.0.0.2:${port}/`), 'DownloadFailed', /TLS handshake/)
  })
})

describe('through a proxy', () => {
  /** Connects to whatever it is told, as proxies do. */
  const openProxy = (t: TestContext) =>
    openOrigin(
      t,
      (socket, target) => {
        const [, address = '', port] = /^(.*):(\d+)$/.exec(target) ?? []
        const onward = connect(Number(port), address, () => {
          socket.write('HTTP/1.1 200 Connected\r\nVia: x\r\n\r\n')
          socket.pipe(onward).pipe(socket)
        })
        onward.on('error', () => socket.end('HTTP/1.1 502 Bad Gateway\r\n\r\n'))
        socket.on('close', () => onward.destroy())
      },
      { host: '127.0.0.1' },
    )
  const names = { 'good.test': () => ['127.0.0.2'], 'inside.test': () => ['127.0.0.1'] }

  test('the proxy gets the checked address, not the name, and only the proxy gets its credentials', async (t) => {
    const origin = await openOrigin(t, (socket) => socket.end(content))
    const via = await openProxy(t)
    const proxy = new URL(`http://us%20er:secret@127.0.0.1:${via.port}`)
    const { fetch } = newFetching(t, { names, proxy })
    getContent(await fetch(`http://good.test:${origin.port}/`))
    assert.match(via.heard[0] ?? '', new RegExp(`^CONNECT 127\\.0\\.0\\.2:${origin.port} HTTP/1\\.1\r\n`))
    assert.match(via.heard[0] ?? '', new RegExp(`Basic ${Buffer.from('us er:secret').toString('base64')}\r\n`))
    assert.doesNotMatch(origin.heard[0] ?? '', /proxy|basic/i)
    assert.match(origin.heard[0] ?? '', /host: good\.test/i)
    await waitUntil('the proxy sees the end', () => via.countOpen() === 0)
  })

  test('TLS is with the host, not with the proxy', async (t) => {
    const trusted = getCACertificates('default')
    setDefaultCACertificates([...trusted, certificate])
    t.after(() => setDefaultCACertificates(trusted))
    const server = createTlsServer({ cert: certificate, key: readCertificate('origin.key') })
    const origin = await openOrigin(t, (socket) => socket.end(content), { server })
    const via = await openProxy(t)
    const { fetch } = newFetching(t, { names, proxy: new URL(`http://127.0.0.1:${via.port}`) })
    getContent(await fetch(`https://good.test:${origin.port}/`))
    assert.doesNotMatch(via.heard[0] ?? '', /GET/)
  })

  test('the proxy is never asked for an address that is not public', async (t) => {
    const via = await openProxy(t)
    const { fetch } = newFetching(t, { names, proxy: new URL(`http://127.0.0.1:${via.port}`) })
    assertFailed(await fetch('http://127.0.0.1/'), 'DownloadFailed', /not (public|lead to a public)/)
    assertFailed(await fetch('http://inside.test/'), 'DownloadFailed', /not (public|lead to a public)/)
    assert.equal(via.heard.length, 0)
  })

  const answers: [name: string, answer: string, reason: RegExp][] = [
    ['refuses', 'HTTP/1.1 403 Forbidden\r\n\r\n', /proxy did not connect/],
    ['speaks something else', 'SSH-2.0-x\r\n\r\n', /proxy did not connect/],
    ['never stops', `HTTP/1.1 200 OK\r\n${'A: b\r\n'.repeat(9_000)}`, /no valid response/],
    ['closes', '', /proxy closed the connection/],
  ]
  for (const [name, answer, reason] of answers) {
    test(`that ${name} it ends in DownloadFailed`, async (t) => {
      const via = await openOrigin(t, (socket) => socket.end(answer), { host: '127.0.0.1' })
      const { fetch } = newFetching(t, { names, proxy: new URL(`http://127.0.0.1:${via.port}`) })
      assertFailed(await fetch('http://good.test/'), 'DownloadFailed', reason)
      await waitUntil('the proxy sees the end', () => via.countOpen() === 0)
    })
  }

  test('that does not answer it ends when the time to connect is over', async (t) => {
    const via = await openOrigin(t, () => {}, { host: '127.0.0.1' })
    const { fetch } = newFetching(t, { limits: shortLimits, names, proxy: new URL(`http://127.0.0.1:${via.port}`) })
    assertFailed(await fetch('http://good.test/'), 'DownloadFailed', /in time/)
    await waitUntil('the proxy sees the end', () => via.countOpen() === 0)
  })
})
