import { Agent, createServer, request } from 'node:http'
import { setTimeout as pause } from 'node:timers/promises'

const lookEveryMs = 100

/** A load balancer: checks the health of each service and passes requests on in turns. It never repeats a request. */
export async function openBalancer() {
  const backends = new Map<string, boolean>()
  const agent = new Agent({ keepAlive: true })
  let turn = 0
  let isOver = false

  const server = createServer((incoming, outgoing) => {
    const ready = [...backends].filter(([, isReady]) => isReady).map(([url]) => url)
    const url = ready[turn++ % ready.length]
    const fail = () => {
      outgoing.writeHead(502)
      outgoing.end()
    }
    if (url === undefined) return fail()
    const { method, url: path, headers } = incoming
    const passed = request(`${url}${path}`, { method, headers, agent }, (answer) => {
      const { connection: _, ...rest } = answer.headers
      outgoing.writeHead(answer.statusCode ?? 502, rest)
      answer.pipe(outgoing)
    })
    passed.once('error', fail)
    incoming.pipe(passed)
  })
  server.keepAliveTimeout = 60_000
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const address = server.address()
  const watching = watch()

  async function watch() {
    while (!isOver) {
      for (const url of backends.keys()) {
        const answer = await fetch(`${url}/readyz`).catch(() => undefined)
        await answer?.body?.cancel()
        if (backends.has(url)) backends.set(url, answer?.status === 200)
      }
      await pause(lookEveryMs)
    }
  }

  return {
    url: `http://127.0.0.1:${typeof address === 'object' && address !== null ? address.port : 0}`,
    add: (url: string) => void backends.set(url, false),
    remove: (url: string) => void backends.delete(url),
    isReady: (url: string) => backends.get(url) === true,
    async close() {
      isOver = true
      await watching
      agent.destroy()
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}
