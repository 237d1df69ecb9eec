import { type ClientRequest, Agent as HttpAgent, type IncomingMessage, request as requestHttp } from 'node:http'
import { Agent as HttpsAgent, request as requestHttps } from 'node:https'
import { AssayError } from '../errors.ts'
import { newMultipart } from '../multipart.ts'
import { toConnectionFailed } from './connection-failed.ts'
import { type Form, type Incoming, maxAnswerBytes, type Outgoing, type Transport } from './transport.ts'

/** Up to this a form is one write. */
const maxSmallBytes = 256 * 1024
/** From this on, and for streams, the service is asked first whether it wants the content. */
const minAskBytes = 1024 * 1024
/** Who does not know that question says nothing. */
const maxAskMs = 1000

/**
 * The http of Node itself: a file goes out chunk by chunk as the network takes it, and is not begun for a key that is
 * refused. Sending 250 MB with fetch took more memory and told less.
 */
export function makeHttpTransport(newKey: () => string): Transport {
  // Idle connections do not keep the process alive.
  const agents = { 'http:': new HttpAgent({ keepAlive: true }), 'https:': new HttpsAgent({ keepAlive: true }) }

  return async (outgoing, signal) => {
    const { body, method } = outgoing
    const url = new URL(outgoing.url)
    const isTls = url.protocol === 'https:'
    const form = typeof body === 'object' ? { ...body, multipart: newMultipart(body, newKey()) } : undefined
    const text = typeof body === 'object' ? undefined : body
    const headers = { ...outgoing.headers, ...(form ? toFormHeaders(form) : toTextHeaders(text)) }
    const agent = agents[isTls ? 'https:' : 'http:']
    const request = (isTls ? requestHttps : requestHttp)(url, { method, headers, agent, signal })
    const answer = readAnswer(request, outgoing)
    if (form === undefined) {
      request.end(text)
      return await answer
    }
    const sending = sendForm(request, form, answer)
    sending.catch(() => {})
    try {
      return await Promise.race([answer, sending.then(() => answer)])
    } finally {
      // After an early answer nobody reads the rest.
      if (!request.writableFinished) request.destroy()
    }
  }
}

type OpenForm = Form & { multipart: ReturnType<typeof newMultipart> }

function toFormHeaders({ content, multipart }: OpenForm): Record<string, string | number> {
  const isAsked = content.length === undefined || content.length >= minAskBytes
  return {
    'Content-Type': multipart.type,
    ...(multipart.length !== undefined && { 'Content-Length': multipart.length }),
    ...(isAsked && { Expect: '100-continue' }),
  }
}

const toTextHeaders = (body: string | undefined) =>
  body === undefined ? {} : { 'Content-Length': new TextEncoder().encode(body).length }

function readAnswer(request: ClientRequest, { url }: Outgoing): Promise<Incoming> {
  const answer = new Promise<Incoming>((resolve, reject) => {
    const fail = (error: unknown) => reject(error instanceof AssayError ? error : toConnectionFailed(url, error))
    const onClose = () => fail(new Error('The connection was closed before the answer'))
    request.on('error', fail)
    request.once('close', onClose)
    request.once('response', (response) => {
      // From here on the answer itself tells when it breaks off.
      request.off('close', onClose)
      readText(response).then(
        (text) => resolve({ status: response.statusCode ?? 0, findHeader: makeFindHeader(response), text }),
        fail,
      )
    })
  })
  // It may fail while the form is still being written.
  answer.catch(() => {})
  return answer
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
    if (bytes > maxAnswerBytes) break
  }
  return Buffer.concat(chunks).toString()
}

/** Ends when all was sent, when an answer came before that, or with what went wrong. */
async function sendForm(request: ClientRequest, form: OpenForm, answer: Promise<Incoming>): Promise<void> {
  const { multipart, content } = form
  let isOver = false
  const over = () => {
    isOver = true
  }
  request.once('response', over)
  answer.catch(over)
  const write = (chunk: Uint8Array) =>
    Promise.race([answer, new Promise<void>((resolve) => request.write(chunk, () => resolve()))])
  try {
    if (content.length !== undefined && content.length <= maxSmallBytes) {
      const chunks: Uint8Array[] = []
      for await (const chunk of multipart.readContent()) chunks.push(chunk)
      const whole = Buffer.concat([multipart.head, ...chunks, multipart.tail])
      await Promise.race([answer, new Promise<void>((resolve) => request.end(whole, resolve))])
      form.onSent(content.length)
      return
    }
    if (request.hasHeader('expect')) await untilWanted(request, answer)
    if (isOver) return
    await write(multipart.head)
    let sent = 0
    // 250 MB in buffers of their own would leave more garbage than may lie around.
    for await (const chunk of multipart.readContent({ isDoneWithEach: true })) {
      await write(chunk)
      if (isOver) return
      sent += chunk.length
      form.onSent(sent)
    }
    request.end(multipart.tail)
  } catch (error) {
    // With an error of the content this ends the request too.
    request.destroy(error instanceof Error ? error : new Error(String(error)))
    throw error
  }
}

function untilWanted(request: ClientRequest, answer: Promise<Incoming>): Promise<unknown> {
  request.flushHeaders()
  return new Promise<void>((resolve) => {
    const go = () => {
      clearTimeout(timer)
      resolve()
    }
    let timer: ReturnType<typeof setTimeout> | undefined
    request.once('socket', (socket) => {
      const begin = () => {
        timer = setTimeout(go, maxAskMs)
      }
      if (socket.connecting) socket.once('connect', begin)
      else begin()
    })
    request.once('continue', go)
    request.once('response', go)
    answer.catch(go)
  })
}
