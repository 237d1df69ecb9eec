import type { IncomingMessage } from 'node:http'
import { type AddressInfo, connect, type Socket } from 'node:net'
import { pipeline } from 'node:stream/promises'
import { createServer } from '../../runtime/node-http.ts'

export type MirrorProxy = { port: number; close(): void }

/**
 * Opens an HTTP proxy on the loopback that connects to the hosts of these addresses and to no other. The jail lets
 * freshclam connect to the port of the proxy only, at any host: Landlock knows no addresses. An attacker who takes over
 * freshclam therefore reaches the mirrors, and hosts that listen at the same port, which differs in every run.
 * freshclam asks for a tunnel for every address, with and without TLS.
 */
export async function openMirrorProxy(addresses: string[]): Promise<MirrorProxy> {
  const allowed = new Set(addresses.flatMap(listTargets))
  const sockets = new Set<Socket>()
  const keep = (socket: Socket) => {
    sockets.add(socket)
    socket.on('error', () => {}).once('close', () => sockets.delete(socket))
  }
  const server = createServer((_, response) => response.writeHead(403).end())
  server.on('connection', keep)
  server.on('connect', (asked: IncomingMessage, socket: Socket, head: Buffer) => {
    const target = toTarget(URL.parse(`https://${asked.url}`))
    if (target === undefined || !allowed.has(`${target.host} ${target.port}`)) {
      return void socket.end('HTTP/1.1 403 Forbidden\r\n\r\n')
    }
    const upstream = connect(target)
    keep(upstream)
    upstream.once('connect', () => {
      socket.write('HTTP/1.1 200 Connection established\r\n\r\n')
      upstream.write(head)
      void Promise.allSettled([pipeline(socket, upstream), pipeline(upstream, socket)])
    })
    upstream.once('error', () => socket.destroy())
    socket.once('close', () => upstream.destroy())
  })
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject).listen(0, '127.0.0.1', resolve)
  })
  return {
    port: (server.address() as AddressInfo).port,
    close() {
      server.close()
      for (const socket of sockets) socket.destroy()
    },
  }
}

/**
 * The hosts and ports that an address leads to. freshclam asks a mirror without a protocol by TLS, older versions ask
 * without.
 */
function listTargets(address: string): string[] {
  const urls = address.includes('://') ? [address] : [`https://${address}`, `http://${address}`]
  return urls.flatMap((url) => {
    const target = toTarget(URL.parse(url))
    return target === undefined ? [] : `${target.host} ${target.port}`
  })
}

const defaultPorts: Record<string, number> = { 'https:': 443, 'http:': 80 }

function toTarget(url: URL | null): { host: string; port: number } | undefined {
  const defaultPort = defaultPorts[url?.protocol ?? '']
  if (url === null || defaultPort === undefined) return undefined
  return { host: url.hostname.replace(/^\[|\]$/g, ''), port: url.port === '' ? defaultPort : Number(url.port) }
}
