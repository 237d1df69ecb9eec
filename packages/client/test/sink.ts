import { createServer, type RequestListener } from 'node:http'
import { createServer as createTlsServer } from 'node:https'
import type { TestContext } from 'node:test'
import { listen, scanId } from './fake-server.ts'

/** A server that counts the bytes it receives and discards them. With a certificate it uses https. */
export async function openSink(t: TestContext, tls?: { cert: Buffer; key: Buffer }) {
  let received = 0
  const onRequest: RequestListener = (request, response) => {
    request.on('data', (chunk: Buffer) => {
      received += chunk.length
    })
    request.on('end', () => response.writeHead(202).end(JSON.stringify({ id: scanId })))
  }
  const server = tls === undefined ? createServer(onRequest) : createTlsServer(tls, onRequest)
  return { url: `http${tls ? 's' : ''}://${await listen(t, server)}`, received: () => received }
}
