import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer } from 'node:http'
import { type AddressInfo, connect, type Socket } from 'node:net'
import { test } from 'node:test'
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
