import { createServer, type RequestListener } from 'node:http'
import { createServer as createTlsServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import type { TestContext } from 'node:test'

/** Takes whatever comes, counts it and forgets it; by https with a certificate. */
export async function openSink(t: TestContext, tls?: { cert: Buffer; key: Buffer }) {
  let received = 0
  const onRequest: RequestListener = (request, response) => {
    request.on('data', (chunk: Buffer) => {
      received += chunk.length
    })
    request.on('end', () => response.writeHead(202).end('{"id":"0199a3c5-52f1-7c39-8f0e-6f1d5d0f6a3b"}'))
  }
  const server = tls === undefined ? createServer(onRequest) : createTlsServer(tls, onRequest)
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  t.after(() => {
    server.close()
    server.closeAllConnections()
  })
  const { port } = server.address() as AddressInfo
  return { url: `http${tls ? 's' : ''}://127.0.0.1:${port}`, received: () => received }
}
