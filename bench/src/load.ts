import { connect } from 'node:net'

type GetLoad = {
  url: string
  headers: string[]
  connections: number
  seconds: number
  /** Requests at least, for each connection, however long they take. */
  least?: number
}

/** Requests per second of `sendGets`. */
export const measureGet = async (options: GetLoad): Promise<number> => (await sendGets(options)).perSecond

/**
 * Sends one GET over many keep-alive connections, each of which sends its next request after the last
 * response. Bare sockets, because a full HTTP client would use more processor time than the servers it measures.
 */
export async function sendGets(options: GetLoad): Promise<{ perSecond: number; done: number }> {
  const { hostname, port, pathname } = new URL(options.url)
  const request = [`GET ${pathname} HTTP/1.1`, `Host: ${hostname}:${port}`, ...options.headers, '', ''].join('\r\n')
  const bytes = Buffer.from(request)
  const end = performance.now() + options.seconds * 1000
  const { connections, least = 1 } = options
  let done = 0

  const one = () =>
    new Promise<void>((resolve, reject) => {
      const socket = connect(Number(port), hostname, () => socket.write(bytes))
      socket.on('data', (chunk) => {
        // The responses have no body and fit into one packet, so that each chunk is one response.
        if (chunk.indexOf('HTTP/1.1 200 ') !== 0 || chunk.lastIndexOf('\r\n\r\n') !== chunk.length - 4) {
          reject(new Error(`An unexpected answer: ${chunk.toString('latin1').slice(0, 200)}`))
          socket.destroy()
          return
        }
        done++
        if (performance.now() < end || done < connections * least) socket.write(bytes)
        else socket.end(() => resolve())
      })
      socket.once('error', reject)
    })

  const start = performance.now()
  await Promise.all(Array.from({ length: connections }, one))
  return { perSecond: (done * 1000) / (performance.now() - start), done }
}
