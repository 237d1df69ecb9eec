import { once } from 'node:events'
import { createServer, type IncomingHttpHeaders, type Server } from 'node:http'
import { type AddressInfo, createServer as createNetServer, type Socket } from 'node:net'
import { makeAddressPolicy } from '../../src/domain/scans/web-address.ts'
import { makeGuardedAgent } from '../../src/outbound/guarded-agent.ts'
import { makeWebhookSender } from '../../src/outbound/senders.ts'

/** The sender as the service has it, allowed to call receivers on this machine. */
export function newLoopbackSender() {
  const policy = makeAddressPolicy(['127.0.0.0/8'])
  return makeWebhookSender({ policy, agent: makeGuardedAgent({ policy }) })
}

export type Received = { method: string; path: string; headers: IncomingHttpHeaders; body: Buffer; at: number }

export type Reply = { status: number; headers?: Record<string, string>; body?: string } | 'never'

/** A receiver that answers in HTTP, and remembers what it got. `host` is one of 127.0.0.0/8, so each can have its own. */
export async function openReceiver(reply: (request: Received, index: number) => Reply, host = '127.0.0.1') {
  const received: Received[] = []
  const server = createServer(async (request, response) => {
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(chunk)
    const { method = '', url = '', headers } = request
    const one = { method, path: url, headers, body: Buffer.concat(chunks), at: Date.now() }
    const answer = reply(one, received.push(one) - 1)
    if (answer !== 'never') response.writeHead(answer.status, answer.headers).end(answer.body)
  })
  const url = await listen(server, host)
  return { url, received, close: () => end(server) }
}

/** A receiver that takes the request and then does with the connection whatever it likes. */
export async function openRawReceiver(act: (socket: Socket, signal: AbortSignal) => unknown) {
  const sockets = new Set<Socket>()
  const closing = new AbortController()
  let requests = 0
  const server = createNetServer((socket) => {
    sockets.add(socket)
    socket.on('error', () => {})
    socket.once('close', () => sockets.delete(socket))
    socket.once('data', () => {
      requests += 1
      act(socket, closing.signal)
    })
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/hook`,
    countOpen: () => sockets.size,
    countRequests: () => requests,
    async close() {
      closing.abort()
      for (const socket of sockets) socket.destroy()
      server.close()
      await once(server, 'close')
    },
  }
}

/** Writes as long as the other side takes it; says how much that was. */
export async function writeWithoutEnd(socket: Socket, start: string, piece: string): Promise<number> {
  socket.write(start)
  while (!socket.destroyed) {
    if (socket.write(piece)) await new Promise(setImmediate)
    else await Promise.race([once(socket, 'drain'), once(socket, 'close')]).catch(() => {})
  }
  return socket.bytesWritten
}

export async function listen(server: Server, host = '127.0.0.1', scheme = 'http'): Promise<string> {
  server.listen(0, host)
  await once(server, 'listening')
  return `${scheme}://${host}:${(server.address() as AddressInfo).port}/hook`
}

export async function end(server: Server) {
  server.closeAllConnections()
  server.close()
  await once(server, 'close')
}
