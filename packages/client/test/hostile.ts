import { createServer, type IncomingHttpHeaders, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { TestContext } from 'node:test'

type Asked = { method: string; path: string; headers: IncomingHttpHeaders; body: Buffer; count: number }
type Reaction =
  | { status?: number; json?: unknown; text?: string; headers?: Record<string, string> }
  /** Breaks the connection, or never answers. */
  | 'reset'
  | 'silence'

/**
 * A server that does what it likes. `react` is told how many requests came before; `atOnce` reacts before the body is
 * read.
 */
export async function openHostile(
  t: TestContext,
  react: (asked: Asked) => Reaction | Promise<Reaction>,
  { atOnce = false } = {},
) {
  const requests: Asked[] = []
  let received = 0
  const onRequest = async (request: IncomingMessage, response: ServerResponse) => {
    const chunks: Buffer[] = []
    const { method = '', url = '', headers } = request
    const asked: Asked = { method, path: url, headers, body: Buffer.alloc(0), count: requests.length }
    requests.push(asked)
    if (!atOnce) {
      for await (const chunk of request) {
        received += chunk.length
        chunks.push(chunk)
      }
      asked.body = Buffer.concat(chunks)
    }
    answer(await react(asked), request, response)
  }
  const server = createServer((request, response) => void onRequest(request, response).catch(() => {}))
  if (atOnce) server.on('checkContinue', (request, response) => void onRequest(request, response).catch(() => {}))
  server.on('connection', (socket) => socket.on('error', () => {}))
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  t.after(() => {
    server.close()
    server.closeAllConnections()
  })
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    requests,
    /** Bytes of bodies. */
    received: () => received,
    countConnections: () =>
      new Promise<number>((resolve, reject) =>
        server.getConnections((error, count) => (error ? reject(error) : resolve(count))),
      ),
  }
}

function answer(reaction: Reaction, request: IncomingMessage, response: ServerResponse) {
  if (reaction === 'silence') return
  if (reaction === 'reset') {
    request.socket.resetAndDestroy()
    return
  }
  const { status = 200, json, text = '', headers } = reaction
  response.writeHead(status, headers).end(json === undefined ? text : JSON.stringify(json))
}

/** An address where nothing listens. */
export async function findDeadUrl(): Promise<string> {
  const server = createServer()
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  await new Promise((resolve) => server.close(resolve))
  return `http://127.0.0.1:${port}`
}
