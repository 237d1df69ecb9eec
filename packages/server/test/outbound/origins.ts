import { subscribe } from 'node:diagnostics_channel'
import { once } from 'node:events'
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net'
import { join } from 'node:path'
import type { TestContext } from 'node:test'
import { Worker } from 'node:worker_threads'
import { openContentStore } from '../../src/blobs/content-store.ts'
import type { Content } from '../../src/domain/content/content.ts'
import type { ContentStore } from '../../src/domain/ports/content-store.ts'
import { newTestDir } from '../blobs/test-dir.ts'

/** Every connection that this process began, to wherever. */
export const dialled: Socket[] = []
subscribe('net.client.socket', (message) => {
  dialled.push((message as { socket: Socket }).socket)
})

export type Origin = {
  readonly port: number
  /** Of all requests so far: what came over each connection. */
  readonly heard: string[]
  /** Still open, as the origin sees it. */
  countOpen(): number
}

/** A server that speaks bytes, so that it can break any rule. `answer` gets each connection once its request is there. */
export async function openOrigin(
  t: TestContext,
  answer: (socket: Socket, path: string) => void,
  options: { host?: string; port?: number; server?: Server } = {},
): Promise<Origin> {
  const open = new Set<Socket>()
  const heard: string[] = []
  const server = options.server ?? createServer()
  server.on('server' in options ? 'secureConnection' : 'connection', (socket: Socket) => {
    const at = heard.push('') - 1
    open.add(socket)
    socket.on('error', () => {}).on('close', () => open.delete(socket))
    socket.on('data', (data) => {
      const before = heard[at] ?? ''
      heard[at] = before + data.toString('latin1')
      if (!before.includes('\r\n\r\n') && heard[at].includes('\r\n\r\n')) answer(socket, heard[at].split(' ')[1] ?? '')
    })
  })
  // Connections may come to their end after the test, when the origin is gone with it.
  server.on('tlsClientError', () => {})
  server.listen(options.port ?? 0, options.host ?? '127.0.0.2')
  await once(server, 'listening')
  t.after(() => {
    for (const socket of open) socket.destroy()
    server.close()
  })
  return { port: (server.address() as AddressInfo).port, heard, countOpen: () => open.size }
}

/** Listens with a queue of one and never takes anybody out of it: further connections get no answer at all. */
export async function openBlackHole(t: TestContext): Promise<number> {
  const script = `
    const server = require('node:net').createServer()
    server.listen({ port: 0, host: '127.0.0.2', backlog: 1 }, () => {
      require('node:worker_threads').parentPort.postMessage(server.address().port)
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0)
    })`
  const worker = new Worker(script, { eval: true })
  t.after(() => worker.terminate())
  return await new Promise((resolve, reject) => worker.once('message', resolve).once('error', reject))
}

export const newAnswer = (head: string, body = '') => `HTTP/1.1 ${head.replaceAll('\n', '\r\n')}\r\n\r\n${body}`

/** The real content store; it counts the writers that were neither finished nor aborted, and what all of them got. */
export function openCountedContents(t: TestContext): {
  contents: ContentStore
  countOpen(): number
  countWritten(): number
} {
  const taken: Content[] = []
  // Before the directory goes, which would be an error for content that lies in it.
  t.after(() => Promise.all(taken.map((content) => content.release())))
  const store = openContentStore({ dir: join(newTestDir(t), 'content') })
  let open = 0
  let written = 0
  const contents: ContentStore = {
    newWriter() {
      const writer = store.newWriter()
      open += 1
      let isOpen = true
      const complete = () => {
        if (isOpen) open -= 1
        isOpen = false
      }
      return {
        write(chunk) {
          written += chunk.length
          return writer.write(chunk)
        },
        async finish() {
          const content = await writer.finish().finally(complete)
          taken.push(content)
          return content
        },
        abort: () => writer.abort().finally(complete),
      }
    },
  }
  return { contents, countOpen: () => open, countWritten: () => written }
}
