import type { ClientRequest, IncomingMessage } from 'node:http'
import type { RequestOptions } from 'node:https'
import { AssayError } from '../errors.ts'
import { newMultipart } from '../multipart.ts'
import { toConnectionFailed } from './connection-failed.ts'
import { type Form, type HttpRequest, type HttpResponse, maxResponseBytes, type Transport } from './transport.ts'

/** Largest content that is sent with its form in a single write. */
const maxSmallBytes = 256 * 1024
/** Smallest content for which the client sends Expect: 100-continue. Streams always use it. */
const minExpectBytes = 1024 * 1024
/** How long to wait for 100 Continue: servers that do not support it stay silent. */
const maxExpectMs = 1000

/**
 * Transport on Node's http module. It sends a file chunk by chunk with backpressure, and does not start an upload that
 * the service rejects. fetch takes more memory for 250 MB and reports less progress.
 */
export function makeHttpTransport(newKey: () => string): Transport {
  const opened = new Map<boolean, Promise<StartRequest>>()

  return async (httpRequest, signal) => {
    const { body, method } = httpRequest
    const url = new URL(httpRequest.url)
    const isTls = url.protocol === 'https:'
    const form = typeof body === 'object' ? { ...body, multipart: newMultipart(body, newKey()) } : undefined
    const text = typeof body === 'object' ? undefined : body
    const headers = { ...httpRequest.headers, ...(form ? toFormHeaders(form) : toTextHeaders(text)) }
    const opening = opened.get(isTls) ?? (isTls ? openHttps() : openHttp())
    opened.set(isTls, opening)
    const startRequest = await opening
    const request = startRequest(url, { method, headers, signal })
    const response = readResponse(request, httpRequest)
    if (form === undefined) {
      request.end(text)
      return await response
    }
    const sending = sendForm(request, form, response)
    sending.catch(() => {})
    try {
      return await Promise.race([response, sending.then(() => response)])
    } finally {
      // After an early response the service does not read the rest of the form.
      if (!request.writableFinished) request.destroy()
    }
  }
}

type StartRequest = (url: URL, options: RequestOptions) => ClientRequest

/** Newer versions of Node than the oldest one that this package supports have this function. */
const { getBuiltinModule } = process as {
  getBuiltinModule?(id: 'node:http'): typeof import('node:http')
  getBuiltinModule?(id: 'node:https'): typeof import('node:https')
}

/**
 * Loads Node's module with the first request. An `import` of it would also load Node's `fetch` and WebSocket, which
 * takes 50 ms of processor time.
 */
async function openHttp(): Promise<StartRequest> {
  const { Agent, request } = getBuiltinModule?.('node:http') ?? (await import('node:http'))
  // Idle keep-alive connections of an agent do not keep the process running.
  const agent = new Agent({ keepAlive: true })
  return (url, options) => request(url, { ...options, agent })
}

async function openHttps(): Promise<StartRequest> {
  const { Agent, request } = getBuiltinModule?.('node:https') ?? (await import('node:https'))
  const agent = new Agent({ keepAlive: true })
  return (url, options) => request(url, { ...options, agent })
}

type OpenForm = Form & { multipart: ReturnType<typeof newMultipart> }

function toFormHeaders({ content, multipart }: OpenForm): Record<string, string | number> {
  const isExpecting = content.length === undefined || content.length >= minExpectBytes
  return {
    'Content-Type': multipart.type,
    ...(multipart.length !== undefined && { 'Content-Length': multipart.length }),
    ...(isExpecting && { Expect: '100-continue' }),
  }
}

const toTextHeaders = (body: string | undefined) =>
  body === undefined ? {} : { 'Content-Length': new TextEncoder().encode(body).length }

function readResponse(request: ClientRequest, { url }: HttpRequest): Promise<HttpResponse> {
  const result = new Promise<HttpResponse>((resolve, reject) => {
    const fail = (error: unknown) => reject(error instanceof AssayError ? error : toConnectionFailed(url, error))
    const onClose = () => fail(new Error('The connection was closed before the response'))
    request.on('error', fail)
    request.once('close', onClose)
    request.once('response', (response) => {
      // From here on, reading the response reports a broken connection.
      request.off('close', onClose)
      readText(response).then(
        (text) => resolve({ status: response.statusCode ?? 0, findHeader: makeFindHeader(response), text }),
        fail,
      )
    })
  })
  // The response may fail while sendForm is still writing and nothing awaits it yet.
  result.catch(() => {})
  return result
}

const makeFindHeader = (response: IncomingMessage) => (name: string) => {
  const value = response.headers[name]
  return Array.isArray(value) ? value[0] : value
}

async function readText(response: IncomingMessage): Promise<string> {
  const chunks: Uint8Array[] = []
  let bytes = 0
  for await (const chunk of response) {
    chunks.push(chunk)
    bytes += chunk.length
    if (bytes > maxResponseBytes) break
  }
  return Buffer.concat(chunks).toString()
}

/** Writes the form until all of it is sent or a response arrives; throws if the content cannot be read. */
async function sendForm(request: ClientRequest, form: OpenForm, response: Promise<HttpResponse>): Promise<void> {
  const { multipart, content } = form
  let hasEnded = false
  const end = () => {
    hasEnded = true
  }
  request.once('response', end)
  response.catch(end)
  const write = (chunk: Uint8Array) =>
    Promise.race([response, new Promise<void>((resolve) => request.write(chunk, () => resolve()))])
  try {
    if (content.length !== undefined && content.length <= maxSmallBytes) {
      const chunks: Uint8Array[] = []
      for await (const chunk of multipart.readContent()) chunks.push(chunk)
      const whole = Buffer.concat([multipart.head, ...chunks, multipart.tail])
      await Promise.race([response, new Promise<void>((resolve) => request.end(whole, resolve))])
      form.onSent(content.length)
      return
    }
    if (request.hasHeader('expect')) await waitForContinue(request, response)
    if (hasEnded) return
    await write(multipart.head)
    let sent = 0
    // Reusing one buffer keeps memory low: 250 MB in separate buffers would outrun the garbage collector.
    for await (const chunk of multipart.readContent({ canReuseChunks: true })) {
      await write(chunk)
      if (hasEnded) return
      sent += chunk.length
      form.onSent(sent)
    }
    request.end(multipart.tail)
  } catch (error) {
    // The service must not take a partial form for a complete one.
    request.destroy(error instanceof Error ? error : new Error(String(error)))
    throw error
  }
}

/** Resolves on 100 Continue, on a response, on a failure, or after `maxExpectMs`. */
function waitForContinue(request: ClientRequest, response: Promise<HttpResponse>): Promise<unknown> {
  request.flushHeaders()
  return new Promise<void>((resolve) => {
    const go = () => {
      clearTimeout(timer)
      resolve()
    }
    let timer: ReturnType<typeof setTimeout> | undefined
    request.once('socket', (socket) => {
      const begin = () => {
        timer = setTimeout(go, maxExpectMs)
      }
      if (socket.connecting) socket.once('connect', begin)
      else begin()
    })
    request.once('continue', go)
    request.once('response', go)
    response.catch(go)
  })
}
