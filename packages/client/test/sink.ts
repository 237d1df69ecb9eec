import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { TestContext } from 'node:test'

/** Takes whatever comes, counts it and forgets it. */
export async function openSink(t: TestContext) {
  let received = 0
  const server = createServer((request, response) => {
    request.on('data', (chunk: Buffer) => {
      received += chunk.length
    })
    request.on('end', () => response.writeHead(202).end('{"id":"0199a3c5-52f1-7c39-8f0e-6f1d5d0f6a3b"}'))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  t.after(() => {
    server.close()
    server.closeAllConnections()
  })
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, received: () => received }
}
