import {
  type ClientRequest,
  type IncomingHttpHeaders,
  type OutgoingHttpHeaders,
  request as startRequest,
} from 'node:http'
import { connect } from 'node:net'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'

/** Bytes are sent with a Content-Length; an iterable is sent with chunked encoding. */
type Body = string | Buffer | Iterable<Buffer> | ((answered: Promise<unknown>) => AsyncIterable<Buffer>)

/** Undefined headers are not sent; each value of a list is sent on a line of its own. */
export type Outgoing = { method: string; path: string; headers?: OutgoingHttpHeaders; body?: Body }

export type Answer = { status: number; headers: IncomingHttpHeaders; text: string; path: string }

/**
 * Sends one request unchanged: fetch would add a Content-Type, join repeated headers, and hide a response that arrives
 * while the body is sent. A body given as a function may wait for that response before it continues.
 */
export async function sendTo(url: string, outgoing: Outgoing): Promise<Answer> {
  const { method, path, headers = {}, body = '' } = outgoing
  const bytes = typeof body === 'string' ? Buffer.from(body) : Buffer.isBuffer(body) ? body : undefined
  const length = bytes === undefined || method === 'GET' ? {} : { 'content-length': bytes.length }
  const request = startRequest(`${url}${path}`, { method, headers: withoutUndefined({ ...length, ...headers }) })
  const answered = new Promise<Answer>((resolve, reject) => {
    request.on('error', reject).once('response', (response) => {
      const chunks: Buffer[] = []
      response.on('data', (chunk: Buffer) => chunks.push(chunk)).once('error', reject)
      response.once('end', () => {
        const text = Buffer.concat(chunks).toString()
        resolve({ status: response.statusCode ?? 0, headers: response.headers, text, path })
      })
    })
  })
  // The service may close the connection before it has read the body; only its response counts.
  const sent =
    bytes === undefined
      ? pipeline(Readable.from(typeof body === 'function' ? body(answered) : body), request).catch(() => {})
      : sendBytes(request, bytes)
  try {
    return await answered
  } finally {
    await sent
  }
}

/** Sends a whole body: a pipeline takes as much processor time as the rest of a small request. */
const sendBytes = (request: ClientRequest, bytes: Buffer) =>
  new Promise<void>((resolve) => {
    request.once('finish', resolve).once('close', resolve).end(bytes)
  })

const withoutUndefined = (headers: OutgoingHttpHeaders) =>
  Object.fromEntries(Object.entries(headers).filter(([, value]) => value !== undefined))

/** Sends bytes, ends the request, and returns the status line and the rest of the response. */
export async function sendAndHangUp(url: string, bytes: string): Promise<string> {
  const { hostname, port } = new URL(url)
  const socket = connect({ host: hostname, port: Number(port), allowHalfOpen: true })
  socket.end(bytes)
  const chunks: Buffer[] = []
  for await (const chunk of socket) chunks.push(chunk)
  return Buffer.concat(chunks).toString()
}
