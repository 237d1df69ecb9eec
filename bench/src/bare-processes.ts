import { fork } from 'node:child_process'
import { createServer } from 'node:http'
import { type AddressInfo, createServer as createPort, Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { openLink } from '../../packages/server/src/runtime/link.ts'

/**
 * The minimum work of HTTP in two processes: the main process passes connections to them in turn, and answers one call
 * of theirs for each request over a socket, as the admission of Assay does. Without the word `two`, one process serves
 * HTTP and makes the call within itself. No key, no database, no log.
 */
const role = process.argv[2]
const linkDescriptor = 4
const options = {
  toWire: String,
  fromWire: (text: string) => new Error(text),
  newAbortReason: () => new Error('The caller has left'),
}
const handlers = { admit: (key: string) => ({ value: { key, outcome: 'admitted' } }) }

function makeServer(admit: (key: string) => Promise<unknown>) {
  return createServer(async (request, response) => {
    await admit(request.url ?? '')
    response.writeHead(200, { 'content-length': 0 }).end()
  })
}

function printUrl(server: { address(): AddressInfo | string | null }) {
  const { port } = server.address() as AddressInfo
  process.stdout.write(`${JSON.stringify({ url: `http://127.0.0.1:${port}/` })}\n`)
}

if (role === 'http') {
  const link = openLink(new Socket({ fd: linkDescriptor }), { handlers: {}, ...options })
  const server = makeServer((key) => link.call('admit', { value: key }))
  process.on('message', (_, socket: Socket | undefined) => socket && server.emit('connection', socket))
} else if (role === 'two') {
  const children = [1, 2].map(() =>
    fork(import.meta.filename, ['http'], { stdio: ['ignore', 'ignore', 'inherit', 'ipc', 'pipe'] }),
  )
  for (const child of children) openLink(child.stdio[linkDescriptor] as Duplex, { handlers, ...options })
  let turn = 0
  const port = createPort({ pauseOnConnect: true }, (socket) => children[turn++ % 2]?.send('connection', socket))
  port.listen(0, '127.0.0.1', () => printUrl(port))
  process.on('SIGTERM', () => {
    for (const child of children) child.kill()
    process.exit()
  })
} else {
  const server = makeServer(async (key) => handlers.admit(key))
  server.listen(0, '127.0.0.1', () => printUrl(server))
}
