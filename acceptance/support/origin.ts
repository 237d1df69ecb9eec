import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'

/** Stands for the public internet: services get it as ASSAY_OUTBOUND_ALLOW; other loopback addresses stay forbidden. */
export const world = '127.9.9.0/24'
const worldHost = '127.9.9.9'

type Answer = (request: IncomingMessage, response: ServerResponse) => void
type Pages = Record<string, Buffer | string | Answer>

/** Opens a web server of a third party. Queries are ignored when it looks up a page. */
export async function openOrigin(pages: Pages | Answer, { host = worldHost, port = 0 } = {}) {
  const asked: string[] = []
  const sockets = new Set<Socket>()
  const server = createServer((request, response) => {
    const path = request.url ?? ''
    asked.push(path)
    const page = typeof pages === 'function' ? pages : pages[path.split('?', 1)[0] ?? '']
    if (page === undefined) response.writeHead(404).end('not here')
    else if (typeof page === 'function') page(request, response)
    else response.end(page)
  })
  server.on('connection', (socket) => {
    sockets.add(socket)
    socket.on('error', () => {}).once('close', () => sockets.delete(socket))
  })
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject).listen({ host, port }, resolve)
  })
  const at = server.address() as AddressInfo
  return {
    url: `http://${host.includes(':') ? `[${host}]` : host}:${at.port}`,
    port: at.port,
    /** Paths of the requests so far. */
    asked,
    async close() {
      for (const socket of sockets) socket.destroy()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

export type Origin = Awaited<ReturnType<typeof openOrigin>>

/** Opens servers on one port of several internal addresses, which must never be reached through a service. */
export async function openCanaries() {
  const touched: string[] = []
  const first = await openCanary('127.0.0.1', 0)
  const others = ['::1', '127.0.0.254', '127.9.8.9', '127.255.255.254']
  const canaries = [first, ...(await Promise.all(others.map((host) => openCanary(host, first.port))))]

  async function openCanary(host: string, port: number) {
    const server = createServer((_request, response) => void response.end('song'))
    server.on('connection', (socket) => {
      touched.push(host)
      socket.on('error', () => {})
    })
    await new Promise<void>((resolve, reject) => {
      server.once('error', reject).listen({ host, port }, resolve)
    })
    return { port: (server.address() as AddressInfo).port, close: () => server.close() }
  }

  return {
    port: first.port,
    /** Addresses that received a connection. */
    touched,
    close: () => void canaries.forEach((canary) => void canary.close()),
  }
}
