import assert from 'node:assert/strict'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { createServer, type RequestListener } from 'node:http'
import { createServer as createTlsServer } from 'node:https'
import { type AddressInfo, connect, type Socket } from 'node:net'
import { test } from 'node:test'
import { connect as connectTls } from 'node:tls'
import { limitConnections } from '../../src/http/connections.ts'
import { waitFor } from '../support/wait-for.ts'

test('clients that connect and send nothing keep no health check out, and no connection within the limit', async (t) => {
  const server = createServer((_request, response) => response.end('ok'))
  const connections = limitConnections(server, 10)
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  const sockets: Socket[] = []
  const open = () => {
    const socket = connect(port, '127.0.0.1')
    sockets.push(socket)
    return socket.on('error', () => {})
  }
  t.after(() => {
    for (const socket of sockets) socket.destroy()
    server.close()
  })
  const first = Array.from({ length: 10 }, open)
  await waitFor(() => connections.countOpen() === 10)
  for (let n = 0; n < 300; n++) open()
  await waitFor(() => connections.countRefused() === 300)
  const answer = await fetch(`http://127.0.0.1:${port}/livez`, { signal: AbortSignal.timeout(20_000) })
  assert.equal(await answer.text(), 'ok')
  assert(first.every(({ destroyed, readyState }) => !destroyed && readyState === 'open'))
  assert(connections.countOpen() <= 10 + 32)
})

const readCertificate = (name: string) =>
  readFileSync(new URL(`../../../../acceptance/support/certificates/${name}`, import.meta.url))

for (const scheme of ['http', 'https'] as const) {
  test(`requests on a connection beyond the limit are recognised: ${scheme}`, async (t) => {
    const seen: boolean[] = []
    const listener: RequestListener = (raw, response) => {
      seen.push(connections.isSurplus({ raw } as never))
      response.end()
    }
    const pair = { cert: readCertificate('first.crt'), key: readCertificate('first.key') }
    const server = scheme === 'http' ? createServer(listener) : createTlsServer(pair, listener)
    const connections = limitConnections(server, 1)
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    const { port } = server.address() as AddressInfo
    const sockets: Socket[] = []
    t.after(() => {
      for (const socket of sockets) socket.destroy()
      server.close()
    })
    for (const count of [1, 2]) {
      const options = { port, host: '127.0.0.1', rejectUnauthorized: false }
      const socket = scheme === 'http' ? connect(options) : connectTls(options)
      sockets.push(socket)
      socket.write('GET / HTTP/1.1\r\nHost: a\r\n\r\n')
      await waitFor(() => seen.length === count)
    }
    assert.deepEqual(seen, [false, true])
  })
}
