import type { IncomingMessage } from 'node:http'
import { Agent as SecureAgent, request as startSecureRequest } from 'node:https'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { EngineDown } from '../../domain/ports/engines.ts'
import { Agent, request as startRequest } from '../../runtime/node-http.ts'
import type { TlsOptions } from './tls-options.ts'

/** Answers of engines are a few hundred bytes. */
const maxAnswerBytes = 64 * 1024
const maxHeaderSize = 16 * 1024
const idleMs = 15_000

type Post = {
  headers: Record<string, string | number>
  /** Makes the body, again for every attempt. */
  newBody(): AsyncIterable<Buffer>
  signal: AbortSignal
}

/** Sends requests to one address of the operator's, on connections that are kept. Redirects are not followed. */
export function makeHttpPost(deps: { url: URL; tls: TlsOptions | undefined; concurrency: number }) {
  const { url, tls } = deps
  const agentOptions = { keepAlive: true, maxSockets: deps.concurrency, timeout: idleMs }
  const agent = tls === undefined ? new Agent(agentOptions) : new SecureAgent({ ...agentOptions, ...tls })

  function start({ headers, signal }: Post) {
    const options = { method: 'POST', agent, headers, signal, maxHeaderSize }
    return tls === undefined ? startRequest(url, options) : startSecureRequest(url, options)
  }

  async function sendOnce(post: Post, onReset: () => void): Promise<{ status: number; text: string }> {
    const request = start(post)
    const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>()
    request.once('response', resolve)
    request.once('upgrade', (_, socket) => {
      socket.destroy()
      reject(new EngineDown('it answered with another protocol'))
    })
    request.on('error', (error: NodeJS.ErrnoException) => {
      if (request.reusedSocket && error.code === 'ECONNRESET') onReset()
      reject(new EngineDown(`it cannot be reached: ${error.message || error.code}`, { cause: error }))
    })
    // A server may answer before it has read everything; the answer then says whether that was enough.
    const sending = pipeline(Readable.from(post.newBody(), { objectMode: false }), request).catch(reject)
    try {
      const response = await promise
      const text = await readText(response)
      return { status: response.statusCode ?? 0, text }
    } finally {
      if (!request.writableFinished) request.destroy()
      await sending
    }
  }

  return {
    /** Sends the body once more when a kept connection was closed just then. */
    async send(post: Post): Promise<{ status: number; text: string }> {
      let wasReset = false
      const note = () => {
        wasReset = true
      }
      try {
        return await sendOnce(post, note)
      } catch (error) {
        if (!wasReset) throw error
        return await sendOnce(post, () => {})
      }
    },
    close: () => agent.destroy(),
  }
}

async function readText(response: IncomingMessage): Promise<string> {
  const parts: Buffer[] = []
  let bytes = 0
  try {
    for await (const part of response) {
      parts.push(part)
      bytes += part.length
      if (bytes > maxAnswerBytes) throw new EngineDown(`its answer is longer than ${maxAnswerBytes} bytes`)
    }
  } catch (error) {
    response.destroy()
    if (error instanceof EngineDown) throw error
    throw new EngineDown(`its answer was cut: ${(error as Error).message}`, { cause: error })
  }
  if (!response.complete) throw new EngineDown('its answer was cut')
  return Buffer.concat(parts).toString('utf8')
}
