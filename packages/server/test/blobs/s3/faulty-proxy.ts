import { createServer, type IncomingMessage, request, type ServerResponse } from 'node:http'
import type { TestContext } from 'node:test'

/** What happens to a call: it passes, gets a response from the proxy, or is cut off, at once or within the response. */
export type Fate = 'pass' | 'cut' | 'lose answer' | { status: number; code: string } | { cutAfter: number }

export type Call = { method: string; path: string; query: URLSearchParams; range: string | undefined }

/** A proxy in front of the store that fails as networks and busy stores do. `decide` is called for each call. */
export async function openFaultyProxy(t: TestContext, store: string, decide: (call: Call) => Fate) {
  const calls: Call[] = []
  const server = createServer((incoming, outgoing) => {
    const { pathname: path, searchParams: query } = new URL(incoming.url ?? '/', store)
    const call = { method: incoming.method ?? '', path, query, range: incoming.headers.range }
    calls.push(call)
    const fate = decide(call)
    if (fate === 'cut') incoming.socket.destroy()
    else if (typeof fate === 'object' && 'status' in fate) answer(incoming, outgoing, fate)
    else passOn(incoming, outgoing, store, fate)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  t.after(() => {
    server.close()
    server.closeAllConnections()
  })
  const { port } = server.address() as { port: number }
  return { endpoint: `http://127.0.0.1:${port}`, calls }
}

function answer(
  incoming: IncomingMessage,
  outgoing: ServerResponse,
  { status, code }: { status: number; code: string },
) {
  incoming.resume()
  incoming.once('end', () => {
    const body = `<?xml version="1.0"?><Error><Code>${code}</Code><Message>as the test wants it</Message></Error>`
    outgoing.writeHead(status, { 'content-type': 'application/xml' }).end(body)
  })
}

function passOn(
  incoming: IncomingMessage,
  outgoing: ServerResponse,
  store: string,
  fate: 'pass' | 'lose answer' | { cutAfter: number },
) {
  const { method, headers } = incoming
  // The Host header is signed, so it stays as it is.
  const onward = request(new URL(incoming.url ?? '/', store), { method, headers }, (response) => {
    if (fate === 'lose answer') {
      response.resume().once('end', () => incoming.socket.destroy())
      return
    }
    outgoing.writeHead(response.statusCode ?? 500, response.headers)
    if (fate === 'pass') {
      response.pipe(outgoing)
      return
    }
    const chunks: Buffer[] = []
    response.on('data', (chunk: Buffer) => chunks.push(chunk))
    response.once('end', () => {
      outgoing.write(Buffer.concat(chunks).subarray(0, fate.cutAfter), () => incoming.socket.destroy())
    })
  })
  onward.once('error', () => incoming.socket.destroy())
  incoming.pipe(onward)
}
