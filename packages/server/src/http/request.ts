import type { IncomingMessage } from 'node:http'
import type { Socket } from 'node:net'
import { TLSSocket } from 'node:tls'
import type { MIMEType } from 'node:util'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { drawRandom } from '../domain/accounts/keys.ts'
import { countParams, parseMediaType } from '../domain/content/multipart.ts'
import { malformed, Problem } from '../domain/problem.ts'

declare module 'fastify' {
  interface FastifyInstance {
    /** ASSAY_PUBLIC_URL, when the operator set it. */
    publicUrl: string | undefined
    /** Requests come from HTTP processes, which tell the origin of their connection. */
    isBehindProcesses: boolean
  }
}

/** The header in which an HTTP process tells the main process the local origin of the client's connection. */
export const localOriginHeader = 'x-assay-local-origin'

/**
 * Lists every value of a header, whose name is given in lower case. Node's parsed headers join repeated values, or drop
 * all but the first.
 */
export function listHeader(request: IncomingMessage, name: string): string[] {
  const values: string[] = []
  if (request.headers[name] === undefined) return values
  const { rawHeaders } = request
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const candidate = rawHeaders[i] as string
    if (candidate.length === name.length && candidate.toLowerCase() === name) values.push(rawHeaders[i + 1] as string)
  }
  return values
}

/** The path of a request without its query, which may hold secrets and must not reach logs or responses. */
export function toPath({ url }: FastifyRequest): string {
  const end = url.search(/[?#]/)
  return end === -1 ? url : url.slice(0, end)
}

/** True for paths that some proxies normalize to another path. They match no route, not even one with a parameter. */
export const isUnroutable = (path: string): boolean => /\/\/|\/\.{1,2}(\/|$)|%2e|%2f|%5c|\\/i.test(path)

/** The origin for links in responses: ASSAY_PUBLIC_URL, else the one in the request's Host header. */
export function toOrigin(request: FastifyRequest): string {
  const { publicUrl } = request.server
  if (publicUrl !== undefined) return publicUrl
  const host = request.headers.host ?? ''
  // Only the sender sees this value, but it goes into JSON and HTML, so anything but a host name is dropped.
  if (/^[\w.:[\]-]{1,255}$/.test(host)) return `${toScheme(request)}://${host}`
  const told = request.server.isBehindProcesses ? request.headers[localOriginHeader] : undefined
  return typeof told === 'string' ? told : toLocalOrigin(request.raw.socket)
}

/** A trusted proxy passes the scheme on as the client may have written it. */
const toScheme = ({ protocol }: FastifyRequest) => (protocol === 'https' ? 'https' : 'http')

/** The origin when a request names no usable host: the local address of its connection. */
export function toLocalOrigin(socket: Socket): string {
  const { localAddress = '127.0.0.1', localPort } = socket
  const host = localAddress.includes(':') ? `[${localAddress}]` : localAddress
  return `${socket instanceof TLSSocket ? 'https' : 'http'}://${host}:${localPort}`
}

/** A W3C trace id for this request: a new span of the trace in `traceparent`, or of a new trace. */
export function newTraceId(traceparent: string | undefined): string {
  const random = drawRandom(24).toString('hex')
  return `00-${findTrace(traceparent) ?? random.slice(0, 32)}-${random.slice(32)}-01`
}

function findTrace(traceparent: string | undefined): string | undefined {
  if (traceparent === undefined) return undefined
  const trace = /^(?!ff|00.{53}.)[0-9a-f]{2}-([0-9a-f]{32})-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}(-|$)/.exec(
    traceparent,
  )?.[1]
  return trace === undefined || /^0+$/.test(trace) ? undefined : trace
}

/**
 * Aborts when the client disconnects before its response is complete, because nobody needs the remaining work. The reason
 * is a refusal like that of a body which ends early: a client that leaves is no fault of the service.
 */
export function abortWhenClientLeaves({ raw }: FastifyReply): AbortSignal {
  const controller = new AbortController()
  const abortUnlessFinished = () => {
    if (!raw.writableFinished) controller.abort(malformed('The client disconnected before it was answered.'))
  }
  if (raw.destroyed) abortUnlessFinished()
  raw.once('close', abortUnlessFinished)
  return controller.signal
}

/** Checks the media type and the encoding of the body. Throws a Problem when the endpoint does not accept them. */
export function requireMediaType(
  request: FastifyRequest,
  expectedType: 'application/json' | 'multipart/form-data',
): MIMEType {
  const contentType = request.headers['content-type']
  const type = contentType === undefined ? undefined : parseMediaType(contentType)
  if (contentType !== undefined && type === undefined) throw newUnsupported('The Content-Type is not a media type.')
  if (type?.essence !== expectedType) {
    throw newUnsupported(
      `This endpoint takes ${expectedType}, not ${contentType === undefined ? 'a body without Content-Type' : 'this type'}.`,
    )
  }
  const charset = type.params.get('charset')
  if (expectedType === 'application/json' && charset !== null && !/^utf-?8$/i.test(charset)) {
    throw newUnsupported('Send JSON in the charset UTF-8.')
  }
  requireIdentity(request)
  return type
}

function requireIdentity({ headers }: FastifyRequest) {
  const encoding = headers['content-encoding']
  if (encoding !== undefined && encoding.toLowerCase() !== 'identity') {
    throw newUnsupported('Send the body without Content-Encoding.')
  }
}

/**
 * The Content-Type as nearly every client writes it, read by one expression. The class has the characters that may be
 * in a boundary (RFC 2046, bchars) and also in a value without quotes (RFC 9110, token), so any other parser agrees.
 * Other boundaries, in quotes or not, are left to MIMEType.
 */
const usualFormType = /^multipart\/form-data; ?boundary=([\w'+.-]+)$/i

/** Returns the boundary of a form. Throws a Problem when the body is no form, or its boundary is not certain. */
export function requireBoundary(request: FastifyRequest): string {
  const contentType = request.headers['content-type'] ?? ''
  const usual = usualFormType.exec(contentType)?.[1]
  if (usual !== undefined) {
    requireIdentity(request)
    return usual
  }
  const boundary = requireMediaType(request, 'multipart/form-data').params.get('boundary')
  if (boundary === null || boundary === '') throw malformed('The Content-Type has no boundary.')
  if (countParams(contentType, 'boundary') > 1) throw malformed('The Content-Type has more than one boundary.')
  return boundary
}

const newUnsupported = (detail: string) => new Problem({ kind: 'unsupported-media-type', detail })
