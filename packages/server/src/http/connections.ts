import type { Server } from 'node:http'
import type { Socket } from 'node:net'
import type { ConnectionError, FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { malformed, type Problem } from '../domain/problem.ts'
import type { Logger } from '../runtime/logger.ts'
import { STATUS_CODES } from '../runtime/node-http.ts'
import { closeGently } from './body.ts'
import { type ProblemWithBody, statusOf, toProblemDetails } from './problem-response.ts'
import { listHeader, newTraceId, toLocalOrigin } from './request.ts'

type Deps = { log: Logger; publicUrl: string | undefined }

const answeredSockets = new WeakSet<Socket>()
/** The socket itself holds its latest reply: writing to a WeakMap per request burdens the collector. */
const latestReply = Symbol('the latest reply on this connection')
type TrackedSocket = Socket & { [latestReply]?: FastifyReply }

/** Connections beyond the limit that are accepted, so that health checks are answered at full load. */
const spareConnections = 32

/**
 * Limits the number of connections. A connection beyond the limit gets 503 for everything but health checks. Beyond the
 * spare ones, a new connection replaces the oldest spare one, so that clients that connect and send nothing do not keep
 * health checks out. Connections within the limit are not affected.
 */
export function limitConnections(server: Server, maxConnections: number) {
  let open = 0
  let refused = 0
  /** Open connections beyond the limit by their peer, the oldest first. */
  const spare = new Map<string, Socket>()
  // A closed connection counts until the end of the turn of the event loop, so a burst needs as much room once more.
  server.maxConnections = maxConnections + 2 * spareConnections
  server.on('drop', () => {
    refused++
  })
  server.on('connection', (socket: Socket) => {
    const peer = toPeer(socket)
    if (++open > maxConnections) {
      refused++
      if (spare.size === spareConnections) closeOldest()
      spare.set(peer, socket)
    }
    socket.once('close', () => {
      open--
      if (spare.get(peer) === socket) spare.delete(peer)
    })
  })
  function closeOldest() {
    for (const [peer, socket] of spare) {
      spare.delete(peer)
      socket.destroy()
      return
    }
  }

  return {
    /** With TLS, the socket of a request is not the one that was accepted, but has the same peer. */
    isSurplus: ({ raw }: Pick<FastifyRequest, 'raw'>): boolean => spare.size > 0 && spare.has(toPeer(raw.socket)),
    countOpen: () => open,
    countRefused: () => refused,
  }
}

const toPeer = ({ remoteAddress, remotePort }: Socket) => `${remoteAddress} ${remotePort}`

/** Handles bytes that Node cannot parse as a request: sends one problem response and closes the connection. */
export function makeClientErrorHandler(deps: Deps) {
  return (error: ConnectionError, socket: Socket) => {
    if (answeredSockets.has(socket)) return
    answeredSockets.add(socket)
    // The client is gone, or its broken request already has a response: a second one would be read as the next.
    if (error.code === 'ECONNRESET' || !socket.writable || isBeingAnswered(socket)) {
      socket.destroy()
      return
    }
    rejectSocket(deps, socket, { problem: framingProblems[error.code] ?? notHttp, instance: '', reason: error.code })
  }
}

function isBeingAnswered(socket: Socket): boolean {
  const reply = (socket as TrackedSocket)[latestReply]
  if (reply === undefined || !reply.raw.headersSent) return false
  // After a complete exchange the error belongs to the next request on the same connection, which has no response yet.
  return !(reply.request.raw.complete && reply.raw.writableFinished)
}

/** Writes a problem response to the socket itself, because Fastify never saw this request. */
function rejectSocket(
  deps: Deps,
  socket: Socket,
  rejection: { problem: ProblemWithBody; instance: string; reason: string },
) {
  const { problem, instance, reason } = rejection
  const traceId = newTraceId(undefined)
  const status = statusOf[problem.kind]
  const origin = deps.publicUrl ?? toLocalOrigin(socket)
  const body = JSON.stringify(toProblemDetails(problem, { origin, instance, traceId }))
  const allow = 'allow' in problem ? `Allow: ${problem.allow.join(', ')}\r\n` : ''
  socket.end(
    `HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\nContent-Type: application/problem+json\r\n${allow}` +
      'X-Content-Type-Options: nosniff\r\n' +
      `Content-Length: ${Buffer.byteLength(body)}\r\nConnection: close\r\n\r\n${body}`,
  )
  // The socket is half-closed by now. A client that never closes its half must not keep it open.
  setTimeout(() => socket.destroy(), 1000).unref()
  deps.log.info({ traceId, status, reason }, 'request rejected')
}

/** Problems of bytes that Node cannot parse, by its error code. */
const framingProblems: Record<string, ProblemWithBody> = {
  HPE_HEADER_OVERFLOW: { kind: 'header-too-large' },
  HPE_CHUNK_EXTENSIONS_OVERFLOW: {
    kind: 'content-too-large',
    detail: 'The chunk extensions of the body are too large.',
  },
  ERR_HTTP_REQUEST_TIMEOUT: {
    kind: 'request-timeout',
    detail: 'The request line and headers did not arrive in time.',
  },
}
const notHttp: ProblemWithBody = {
  kind: 'malformed-request',
  detail: 'The bytes received are not a valid HTTP request.',
}

/** Finds faults of a request that Node accepts and the interface does not. */
export function checkFraming({ raw }: FastifyRequest): Problem | undefined {
  if (raw.httpVersionMajor !== 1) return malformed(`HTTP/${raw.httpVersion} is not supported. Use HTTP/1.1.`)
  const hosts = listHeader(raw, 'host')
  if (hosts.length > 1) return malformed('The request has more than one Host header.')
  if (hosts.length === 0 && raw.httpVersionMinor === 1) return malformed('The request has no Host header.')
  const { expect } = raw.headers
  if (expect !== undefined && !/^100-continue$/i.test(expect))
    return malformed('The only supported value of the Expect header is 100-continue.')
  return undefined
}

/** Records the latest reply of each connection for the handler above, and routes requests that Node would answer. */
export function watchConnections(app: FastifyInstance, deps: Deps) {
  app.addHook('onRequest', (request, reply, done) => {
    const socket: TrackedSocket = request.raw.socket
    // A connection gets one function for all of its requests: V8 keeps a request alive for long if its socket has a
    // function that was made for it.
    if (socket[latestReply] === undefined) closeGently(socket, () => socket[latestReply]?.request.raw)
    socket[latestReply] = reply
    done()
  })
  // `readBody` sends 100 Continue, so a client with an invalid key uploads nothing.
  for (const event of ['checkContinue', 'checkExpectation']) {
    app.server.on(event, (request, response) => app.server.emit('request', request, response))
  }
  app.server.on('connect', (request, socket: Socket) => {
    // Node has removed its listeners from this socket: without one, a reset by the client would end the process.
    socket
      .removeAllListeners('data')
      .on('error', () => {})
      .resume()
    const problem = { kind: 'method-not-allowed' as const, allow: ['GET', 'HEAD', 'POST'] }
    rejectSocket(deps, socket, { problem, instance: request.url ?? '', reason: 'CONNECT' })
  })
}
