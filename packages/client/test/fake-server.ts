import {
  createServer,
  type IncomingHttpHeaders,
  type IncomingMessage,
  type Server,
  type ServerResponse,
} from 'node:http'
import type { AddressInfo } from 'node:net'
import type { TestContext } from 'node:test'

export type ReceivedRequest = {
  method: string
  path: string
  headers: IncomingHttpHeaders
  body: Buffer
  count: number
}
type Reaction =
  | { status?: number; json?: unknown; text?: string; headers?: Record<string, string> }
  /** `reset` breaks the connection; `silence` never responds. */
  | 'reset'
  | 'silence'

export const scanId = '0199a3c5-52f1-7c39-8f0e-6f1d5d0f6a3b'

/** A scan result as the service would send it. */
export const newResult = (status: 'clean' | 'threat' | 'pending' = 'clean', signals?: string[]) => ({
  id: scanId,
  scan_type: 'malware',
  status,
  content_length: 1,
  content_type: 'text/plain',
  created_at: '2026-11-15T12:17:54.935Z',
  ...(signals === undefined ? {} : { signals }),
})

/**
 * A server whose responses the test chooses. `react` gets each request with the number of requests before it; with
 * `isEarly` it runs before the body is read.
 */
export async function openFakeServer(
  t: TestContext,
  react: (asked: ReceivedRequest) => Reaction | Promise<Reaction>,
  { isEarly = false } = {},
) {
  const requests: ReceivedRequest[] = []
  let received = 0
  const onRequest = async (request: IncomingMessage, response: ServerResponse) => {
    const chunks: Buffer[] = []
    const { method = '', url = '', headers } = request
    const asked: ReceivedRequest = { method, path: url, headers, body: Buffer.alloc(0), count: requests.length }
    requests.push(asked)
    if (!isEarly) {
      for await (const chunk of request) {
        received += chunk.length
        chunks.push(chunk)
      }
      asked.body = Buffer.concat(chunks)
    }
    respond(await react(asked), request, response)
  }
  const server = createServer((request, response) => void onRequest(request, response).catch(() => {}))
  if (isEarly) server.on('checkContinue', (request, response) => void onRequest(request, response).catch(() => {}))
  server.on('connection', (socket) => socket.on('error', () => {}))
  return {
    url: `http://${await listen(t, server)}`,
    requests,
    /** Total bytes of request bodies. */
    received: () => received,
    countConnections: () =>
      new Promise<number>((resolve, reject) =>
        server.getConnections((error, count) => (error ? reject(error) : resolve(count))),
      ),
  }
}

/** Starts a server, on a free port by default, closes it with the test, and returns its host and port. */
export async function listen(t: TestContext, server: Server, { host = '127.0.0.1', port = 0 } = {}): Promise<string> {
  await new Promise<void>((resolve) => server.listen(port, host, resolve))
  t.after(() => {
    server.close()
    server.closeAllConnections()
  })
  return `${host}:${(server.address() as AddressInfo).port}`
}

function respond(reaction: Reaction, request: IncomingMessage, response: ServerResponse) {
  if (reaction === 'silence') return
  if (reaction === 'reset') {
    request.socket.resetAndDestroy()
    return
  }
  const { status = 200, json, text = '', headers } = reaction
  response.writeHead(status, headers).end(json === undefined ? text : JSON.stringify(json))
}

/** An address on which no server listens. */
export async function findUnusedUrl(): Promise<string> {
  const server = createServer()
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  await new Promise((resolve) => server.close(resolve))
  return `http://127.0.0.1:${port}`
}
