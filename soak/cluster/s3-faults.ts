import { Agent, createServer, type IncomingMessage, request, type ServerResponse } from 'node:http'
import { text } from 'node:stream/consumers'
import { setTimeout as pause } from 'node:timers/promises'

/**
 * Shares of requests that get a 503 (`busy`) or lose their connection (`cut`); all are delayed by `delayMs`. Lists say
 * that objects and uploads are older by `agedMs`.
 */
type Faults = { busy: number; cut: number; delayMs: number; agedMs: number }

const none: Faults = { busy: 0, cut: 0, delayMs: 0, agedMs: 0 }

async function passAged(answer: IncomingMessage, outgoing: ServerResponse, agedMs: number) {
  const { 'content-length': _, ...headers } = answer.headers
  const aged = (await text(answer)).replaceAll(/(?<=<(?:LastModified|Initiated)>)[^<]+/g, (at) =>
    new Date(Date.parse(at) - agedMs).toISOString(),
  )
  outgoing.writeHead(answer.statusCode ?? 502, headers).end(aged)
}

/** A proxy to a store that causes faults. */
export async function openS3Faults(endpoint: string) {
  const { hostname, port } = new URL(endpoint)
  const agent = new Agent({ keepAlive: true })
  let faults = none
  const counts = { passed: 0, busy: 0, cut: 0 }

  const server = createServer((incoming, outgoing) => void pass(incoming, outgoing))
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const address = server.address()

  async function pass(incoming: IncomingMessage, outgoing: ServerResponse) {
    incoming.on('error', () => {})
    outgoing.on('error', () => {})
    const { busy, cut, delayMs, agedMs } = faults
    if (delayMs > 0) await pause(delayMs)
    const chance = Math.random()
    if (chance < busy) {
      counts.busy++
      incoming.resume()
      outgoing.writeHead(503, { 'content-type': 'application/xml', connection: 'close' })
      outgoing.end(
        '<?xml version="1.0"?><Error><Code>SlowDown</Code><Message>Please reduce your request rate.</Message></Error>',
      )
      return
    }
    const isCut = chance < busy + cut
    counts[isCut ? 'cut' : 'passed']++
    const { expect: _, ...headers } = incoming.headers
    const { method, url: path } = incoming
    // The Host header stays unchanged, because the signature covers it.
    const passed = request({ hostname, port, method, path, headers, agent }, (answer) => {
      // The store completes the request and the response is lost, or half of the content arrives.
      if (isCut) {
        answer.once('data', (chunk: Buffer) => outgoing.write(chunk.subarray(0, chunk.length / 2)))
        answer.once('end', () => outgoing.destroy())
        answer.resume()
        return
      }
      if (agedMs > 0 && method === 'GET' && /[?&](list-type|uploads)\b/.test(path ?? '')) {
        void passAged(answer, outgoing, agedMs)
        return
      }
      outgoing.writeHead(answer.statusCode ?? 502, answer.headers)
      answer.on('error', () => outgoing.destroy()).pipe(outgoing)
    })
    passed.once('error', () => outgoing.destroy())
    incoming.once('aborted', () => passed.destroy())
    incoming.pipe(passed)
  }

  return {
    url: `http://127.0.0.1:${typeof address === 'object' && address !== null ? address.port : 0}`,
    set(next: Partial<Faults>) {
      faults = { ...none, ...next }
    },
    toText: () =>
      `of the calls to S3 ${counts.busy} were answered with 503, ${counts.cut} cut, ${counts.passed} passed on`,
    async close() {
      agent.destroy()
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

export type S3Faults = Awaited<ReturnType<typeof openS3Faults>>
