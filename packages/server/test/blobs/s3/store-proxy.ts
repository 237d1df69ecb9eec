import { createServer, type IncomingMessage, request, type Server } from 'node:http'
import { createServer as createTlsServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import type { TestContext } from 'node:test'

type Options = {
  /** Certificate and key of an HTTPS listener. */
  tls?: { cert: string; key: string }
  /** True for requests that the store would refuse for lack of a right. */
  isDenied?(incoming: IncomingMessage): boolean
}

/** A listener in front of a store. Returns its origin, and the requests that came. */
export async function openStoreProxy(t: TestContext, endpoint: string, { tls, isDenied }: Options = {}) {
  const seen: IncomingMessage[] = []
  const listener = tls === undefined ? createServer() : createTlsServer(tls)
  listener.on('request', (incoming, outgoing) => {
    seen.push(incoming)
    const { method, headers, url = '/' } = incoming
    if (isDenied?.(incoming)) {
      incoming.resume()
      outgoing.writeHead(403, { 'content-type': 'application/xml' })
      outgoing.end('<Error><Code>AccessDenied</Code><Message>Access Denied.</Message></Error>')
      return
    }
    const onward = request(new URL(url, endpoint), { method, headers }, (response) => {
      outgoing.writeHead(response.statusCode ?? 500, response.headers)
      response.pipe(outgoing)
    })
    incoming.pipe(onward)
  })
  const port = await listen(t, listener)
  return { origin: `${tls === undefined ? 'http' : 'https'}://127.0.0.2:${port}`, port, seen }
}

/** Listens on a loopback address that the certificates of the tests name, and returns the port. */
export async function listen(t: TestContext, server: Server): Promise<number> {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.2', resolve))
  t.after(() => {
    server.close()
    server.closeAllConnections()
  })
  return (server.address() as AddressInfo).port
}
