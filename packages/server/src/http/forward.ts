import type { IncomingMessage } from 'node:http'
import { pipeline } from 'node:stream'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { Agent, request as startRequest } from '../runtime/node-http.ts'
import { localOriginHeader, toLocalOrigin } from './request.ts'

/** Free connections to the main process close well before that process would close them. */
const freeConnectionMs = 20_000

const addressHeaders = ['x-forwarded-for', 'x-forwarded-host', 'x-forwarded-proto', localOriginHeader]
const connectionHeaders = ['connection', 'keep-alive', 'proxy-connection']
const dropped = [...addressHeaders, ...connectionHeaders]
/** HTTP/1.0 has no interim responses: its clients would read `100 Continue` as the final response. */
const droppedOfOld = [...dropped, 'expect']

declare module 'fastify' {
  interface FastifyRequest {
    /** The main process answers, logs and counts the request. */
    isForwarded: boolean
  }
}

/** Makes the function with which an HTTP process passes a request on to the main process, and its answer back. */
export function makeForward(socketPath: string) {
  const agent = new Agent({ keepAlive: true, timeout: freeConnectionMs })

  return (request: FastifyRequest, reply: FastifyReply) => {
    request.isForwarded = true
    reply.hijack()
    const { raw } = request
    const response = reply.raw
    const outgoing = startRequest({
      agent,
      socketPath,
      method: raw.method ?? 'GET',
      path: raw.url ?? '/',
      headers: [
        ...dropHeaders(raw.rawHeaders, raw.httpVersionMinor === 0 ? droppedOfOld : dropped),
        'X-Forwarded-For',
        request.ip,
        'X-Forwarded-Proto',
        request.protocol,
        localOriginHeader,
        toLocalOrigin(raw.socket),
        // HTTP/1.0 knows no Host, and the request goes on in HTTP/1.1. This one names no host.
        ...(raw.headers.host === undefined ? ['Host', '/'] : []),
        'Connection',
        'keep-alive',
      ],
    })
    outgoing.on('continue', () => response.writeContinue())
    outgoing.on('response', (answer) => {
      response.writeHead(answer.statusCode ?? 502, toAnswerHeaders(answer))
      pipeline(answer, response, () => {})
    })
    // The main process may answer, and close its side, before it has read the body.
    outgoing.on('error', () => {
      raw.unpipe(outgoing).resume()
      if (!response.headersSent) response.destroy()
    })
    response.on('close', () => outgoing.destroy())
    raw.pipe(outgoing)
  }
}

export type Forward = ReturnType<typeof makeForward>

/** The main process decides whether the connection of the client stays open. */
function toAnswerHeaders(answer: IncomingMessage): string[] {
  const headers = dropHeaders(answer.rawHeaders, [...connectionHeaders, 'transfer-encoding'])
  return answer.headers.connection === 'close' ? [...headers, 'Connection', 'close'] : headers
}

function dropHeaders(rawHeaders: string[], names: string[]): string[] {
  const kept: string[] = []
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const name = rawHeaders[at] as string
    if (!names.includes(name.toLowerCase())) kept.push(name, rawHeaders[at + 1] as string)
  }
  return kept
}
