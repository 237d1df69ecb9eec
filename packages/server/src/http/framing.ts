import { STATUS_CODES } from 'node:http'
import type { Socket } from 'node:net'
import type { ConnectionError, FastifyInstance, FastifyRequest } from 'fastify'
import { malformed } from '../domain/problem.ts'
import type { Logger } from '../runtime/logger.ts'
import { listHeader } from './headers.ts'
import { statusOf, toProblemDetails } from './problem-response.ts'
import { newTraceId } from './trace.ts'

const answered = new WeakSet<Socket>()
const responding = new WeakMap<Socket, { sent: boolean }>()

/** Answers bytes that never became a request, once, and hangs up. */
export function makeClientErrorHandler(log: Logger) {
  return (error: ConnectionError, socket: Socket) => {
    if (answered.has(socket)) return
    answered.add(socket)
    // Nobody is there, or the request that broke off has its answer already: a second one would be read as the next.
    if (error.code === 'ECONNRESET' || !socket.writable || responding.get(socket)?.sent === true) {
      socket.destroy()
      return
    }
    const problem = toFramingProblem(error)
    const traceId = newTraceId(undefined)
    const status = statusOf[problem.kind]
    const origin = `http://${socket.localAddress}:${socket.localPort}`
    const body = JSON.stringify(toProblemDetails(problem, { origin, instance: '', traceId }))
    socket.end(
      `HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\nContent-Type: application/problem+json\r\n` +
        `Content-Length: ${Buffer.byteLength(body)}\r\nConnection: close\r\n\r\n${body}`,
    )
    // Half-closed by now; a client that never closes its half must not keep the socket.
    setTimeout(() => socket.destroy(), 1000).unref()
    log.info({ traceId, status, reason: error.code }, 'request refused')
  }
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
export function checkFraming(request: FastifyRequest) {
  const { raw } = request
  if (raw.httpVersionMajor !== 1) throw malformed(`HTTP/${raw.httpVersion} is not served here; use HTTP/1.1.`)
  const hosts = listHeader(raw, 'host')
  if (hosts.length > 1) throw malformed('The request has more than one Host header.')
  if (hosts.length === 0 && raw.httpVersionMinor === 1) throw malformed('The request has no Host header.')
}

/** Keeps track of who is being answered, for the handler above; and lets requests that expect 100 reach their route. */
export function watchConnections(app: FastifyInstance) {
  app.addHook('onRequest', (request, reply, done) => {
    responding.set(request.raw.socket, reply)
    done()
  })
  // The key is checked before 250 MB are invited: whoever reads the body says "continue" (see body.ts).
  app.server.on('checkContinue', (request, response) => app.server.emit('request', request, response))
  app.server.on('connect', (_request, socket) =>
    socket.end('HTTP/1.1 405 Method Not Allowed\r\nConnection: close\r\n\r\n'),
  )
}
