import { type IncomingHttpHeaders, type OutgoingHttpHeaders, request as startRequest } from 'node:http'
import { connect } from 'node:net'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'

/** Bytes go out with their length; chunks go out chunked, without one. */
type Body = string | Buffer | Iterable<Buffer> | ((answered: Promise<unknown>) => AsyncIterable<Buffer>)

/** Headers that are undefined are not sent; of a list, each value goes on a line of its own. */
export type Outgoing = { method: string; path: string; headers?: OutgoingHttpHeaders; body?: Body }

export type Answer = { status: number; headers: IncomingHttpHeaders; text: string; path: string }

/**
 * One request, exactly as told: fetch would add a Content-Type, join repeated headers, and hide an answer that comes
 * while the body is still going out. A body given as a function may wait for that answer before it goes on.
 */
export async function sendTo(url: string, outgoing: Outgoing): Promise<Answer> {
  const { method, path, headers = {}, body = '' } = outgoing
  const bytes = typeof body === 'string' || Buffer.isBuffer(body) ? Buffer.from(body) : undefined
  const length = bytes === undefined || method === 'GET' ? {} : { 'content-length': bytes.length }
  const request = startRequest(`${url}${path}`, { method, headers: withoutUndefined({ ...length, ...headers }) })
  const answered = new Promise<Answer>((resolve, reject) => {
    request.once('error', reject).once('response', (response) => {
      const chunks: Buffer[] = []
      response.on('data', (chunk: Buffer) => chunks.push(chunk)).once('error', reject)
      response.once('end', () => {
        const text = Buffer.concat(chunks).toString()
        resolve({ status: response.statusCode ?? 0, headers: response.headers, text, path })
      })
    })
  })
  const source = typeof body === 'function' ? body(answered) : bytes === undefined ? body : [bytes]
  // Whether the whole body got out is for the service to decide; only its answer counts.
  const sent = pipeline(Readable.from(source), request).catch(() => {})
  try {
    return await answered
  } finally {
    await sent
  }
}

const withoutUndefined = (headers: OutgoingHttpHeaders) =>
  Object.fromEntries(Object.entries(headers).filter(([, value]) => value !== undefined))

/** Sends bytes, says that no more will come, and returns the status line and the rest of what came back. */
export async function sendAndHangUp(url: string, bytes: string): Promise<string> {
  const { hostname, port } = new URL(url)
  const socket = connect({ host: hostname, port: Number(port), allowHalfOpen: true })
  socket.end(bytes)
  const chunks: Buffer[] = []
  for await (const chunk of socket) chunks.push(chunk)
  return Buffer.concat(chunks).toString()
}
