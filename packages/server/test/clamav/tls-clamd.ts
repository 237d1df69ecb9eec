import { createServer, type TLSSocket } from 'node:tls'
import { parentPort, workerData } from 'node:worker_threads'

/** A clamd over TLS in a thread of its own, so that it replies while the thread of the test is blocked. */
const { key, cert, replies } = workerData as { key: string; cert: string; replies: string[][] }

function serve(socket: TLSSocket) {
  let received = Buffer.alloc(0)
  let scans = 0
  let isSession = false
  socket.setNoDelay().on('error', () => {})
  socket.on('data', (bytes) => {
    received = Buffer.concat([received, bytes])
    isSession ||= received.subarray(0, 10).equals(Buffer.from('zIDSESSION'))
    if (!received.subarray(-4).equals(Buffer.alloc(4))) return
    received = Buffer.alloc(0)
    for (const reply of replies[scans++] ?? []) socket.write(reply)
    if (!isSession) socket.end()
  })
}

const server = createServer({ key, cert }, serve)
server.listen(0, '127.0.0.1', () => parentPort?.postMessage(server.address()))
