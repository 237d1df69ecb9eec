import { connect } from 'node:net'

/**
 * Requests per second of one GET over many kept-alive connections, each sending its next request when the last is
 * answered. Bare sockets: a full HTTP client would take more of the machine than the servers it measures.
 */
export async function measureGet(options: { url: string; headers: string[]; connections: number; seconds: number }) {
  const { hostname, port, pathname } = new URL(options.url)
  const request = [`GET ${pathname} HTTP/1.1`, `Host: ${hostname}:${port}`, ...options.headers, '', ''].join('\r\n')
  const bytes = Buffer.from(request)
  const end = performance.now() + options.seconds * 1000
  let done = 0

  const one = () =>
    new Promise<void>((resolve, reject) => {
      const socket = connect(Number(port), hostname, () => socket.write(bytes))
      socket.on('data', (chunk) => {
        // The answers have no body and fit into one packet: a chunk is an answer, and must be a good one.
        if (chunk.indexOf('HTTP/1.1 200 ') !== 0 || chunk.lastIndexOf('\r\n\r\n') !== chunk.length - 4) {
          reject(new Error(`An unexpected answer: ${chunk.toString('latin1').slice(0, 200)}`))
          socket.destroy()
          return
        }
        done++
        if (performance.now() < end) socket.write(bytes)
        else socket.end(() => resolve())
      })
      socket.once('error', reject)
    })

  const start = performance.now()
  await Promise.all(Array.from({ length: options.connections }, one))
  return (done * 1000) / (performance.now() - start)
}
