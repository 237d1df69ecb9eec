import assert from 'node:assert/strict'
import { once } from 'node:events'
import { type AddressInfo, connect, createServer } from 'node:net'
import { text } from 'node:stream/consumers'
import { after, before, describe, test } from 'node:test'
import { openMirrorProxy } from '../../src/engines/clamav/freshclam.ts'

describe('the proxy of freshclam', () => {
  /** Stands for a mirror, whose bytes the proxy does not read. */
  const mirror = createServer((socket) => socket.on('error', () => {}).pipe(socket))
  const getPort = () => (mirror.address() as AddressInfo).port
  before(() => once(mirror.listen(0, '127.0.0.1'), 'listening'))
  after(() => mirror.close())

  /** Sends a request and `hello` to a proxy for this address, and returns everything that comes back. */
  async function ask(address: string, start: string): Promise<string> {
    const proxy = await openMirrorProxy(['https://mirror.invalid', address])
    try {
      const socket = connect(proxy.port, '127.0.0.1')
      socket.end(`${start} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\nhello`)
      return await text(socket).catch(() => '')
    } finally {
      proxy.close()
    }
  }
  const tunnelled = 'HTTP/1.1 200 Connection established\r\n\r\nhello'

  test('tunnels to the host and port of each address, with and without TLS', async () => {
    const target = `127.0.0.1:${getPort()}`
    assert.equal(await ask(`https://user:word@${target}/x.ndb`, `CONNECT ${target}`), tunnelled)
    assert.equal(await ask(`http://localhost:${getPort()}`, `CONNECT localhost:${getPort()}`), tunnelled)
    assert.equal(await ask(target, `CONNECT ${target}`), tunnelled)
  })

  test('refuses every other host, port and method', async () => {
    const address = `http://127.0.0.1:${getPort()}`
    for (const start of [
      `CONNECT localhost:${getPort()}`,
      'CONNECT 127.0.0.1:22',
      'CONNECT 169.254.169.254:80',
      'CONNECT nonsense',
      `GET ${address}/daily.cvd`,
      'GET /daily.cvd',
    ]) {
      assert.match(await ask(address, start), /^HTTP\/1\.1 403 /, start)
    }
    assert.match(await ask('file:///etc/passwd', 'CONNECT 127.0.0.1:443'), /^HTTP\/1\.1 403 /)
  })

  test('ends a tunnel that cannot be opened, and all tunnels when it is closed', async () => {
    assert.equal(await ask('http://127.0.0.1:1', 'CONNECT 127.0.0.1:1'), '')
    const proxy = await openMirrorProxy([`127.0.0.1:${getPort()}`])
    const socket = connect(proxy.port, '127.0.0.1').on('error', () => {})
    socket.write(`CONNECT 127.0.0.1:${getPort()} HTTP/1.1\r\n\r\n`)
    await once(socket, 'data')
    proxy.close()
    await once(socket.resume(), 'close')
  })
})
