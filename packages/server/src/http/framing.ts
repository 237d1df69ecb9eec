import { STATUS_CODES } from 'node:http'
import type { Socket } from 'node:net'
import type { ConnectionError, FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { malformed, type Problem } from '../domain/problem.ts'
import type { Logger } from '../runtime/logger.ts'
import { listHeader } from './headers.ts'
import { toLocalOrigin } from './origin.ts'
import { type Described, statusOf, toProblemDetails } from './problem-response.ts'
import { newTraceId } from './trace.ts'

type Deps = { log: Logger; publicUrl: string | undefined }

const answered = new WeakSet<Socket>()
/** On the socket itself: a weak map written with every request is a burden to the garbage collector. */
const current = Symbol('the latest reply on this connection')
type TrackedSocket = Socket & { [current]?: FastifyReply }

/** Answers bytes that never became a request, once, and hangs up. */
export function makeClientErrorHandler(deps: Deps) {
  return (error: ConnectionError, socket: Socket) => {
    if (answered.has(socket)) return
    answered.add(socket)
    // Nobody is there, or the request that broke off has its answer already: a second one would be read as the next.
    if (error.code === 'ECONNRESET' || !socket.writable || isBeingAnswered(socket)) {
      socket.destroy()
      return
    }
    refuse(deps, socket, { problem: toFramingProblem(error), instance: '', reason: error.code })
  }
}

function isBeingAnswered(socket: Socket): boolean {
  const reply = (socket as TrackedSocket)[current]
  if (reply === undefined || !reply.raw.headersSent) return false
  // A request that is over does not count: what broke is the next one on the same connection.
  return !(reply.request.raw.complete && reply.raw.writableFinished)
}

/** An answer without Fastify, which never saw this request. */
function refuse(deps: Deps, socket: Socket, refused: { problem: Described; instance: string; reason: string }) {
  const { problem, instance, reason } = refused
  const traceId = newTraceId(undefined)
  const status = statusOf[problem.kind]
  const origin = deps.publicUrl ?? toLocalOrigin(socket)
  const body = JSON.stringify(toProblemDetails(problem, { origin, instance, traceId }))
  const allow = 'allow' in problem ? `Allow: ${problem.allow.join(', ')}\r\n` : ''
  socket.end(
    `HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\nContent-Type: application/problem+json\r\n${allow}` +
      `Content-Length: ${Buffer.byteLength(body)}\r\nConnection: close\r\n\r\n${body}`,
  )
  // Half-closed by now; a client that never closes its half must not keep the socket.
  setTimeout(() => socket.destroy(), 1000).unref()
  deps.log.info({ traceId, status, reason }, 'request refused')
}

function toFramingProblem(error: ConnectionError) {
  switch (error.code) {
    case 'HPE_HEADER_OVERFLOW':
      return { kind: 'header-too-large' } as const
    case 'HPE_CHUNK_EXTENSIONS_OVERFLOW':
      return { kind: 'content-too-large', detail: 'The chunk extensions of the body are too large.' } as const
    case 'ERR_HTTP_REQUEST_TIMEOUT':
      return { kind: 'request-timeout', detail: 'The request line and headers did not arrive in time.' } as const
    default:
      return { kind: 'malformed-request', detail: 'The bytes received are not a valid HTTP request.' } as const
  }
}

/** What Node lets pass and we do not. */
export function checkFraming({ raw }: FastifyRequest): Problem | undefined {
  if (raw.httpVersionMajor !== 1) return malformed(`HTTP/${raw.httpVersion} is not served here; use HTTP/1.1.`)
  const hosts = listHeader(raw, 'host')
  if (hosts.length > 1) return malformed('The request has more than one Host header.')
  if (hosts.length === 0 && raw.httpVersionMinor === 1) return malformed('The request has no Host header.')
  const { expect } = raw.headers
  if (expect !== undefined && !/^100-continue$/i.test(expect)) return malformed('Expect may only be 100-continue.')
  return undefined
}

/** Keeps track of who is being answered, for the handler above; and lets requests that expect 100 reach their route. */
export function watchConnections(app: FastifyInstance, deps: Deps) {
  app.addHook('onRequest', (request, reply, done) => {
    const socket: TrackedSocket = request.raw.socket
    socket[current] = reply
    done()
  })
  // The key is checked before 250 MB are invited: whoever reads the body says "continue" (see body.ts).
  for (const event of ['checkContinue', 'checkExpectation']) {
    app.server.on(event, (request, response) => app.server.emit('request', request, response))
  }
  app.server.on('connect', (request, socket: Socket) => {
    // Node has let go of this socket: without a listener of ours, a client that resets it would end the process.
    socket.on('error', () => {}).resume()
    const problem = { kind: 'method-not-allowed' as const, allow: ['GET', 'HEAD', 'POST'] }
    refuse(deps, socket, { problem, instance: request.url ?? '', reason: 'CONNECT' })
  })
}
