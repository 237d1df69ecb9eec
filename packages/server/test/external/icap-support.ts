import { createServer, type Socket } from 'node:net'
import { openIcapAdapter } from '../../src/engines/external/icap/icap-adapter.ts'
import type { ThreatHeader } from '../../src/engines/external/icap/icap-findings.ts'
import { newContent } from '../scans/scan-support.ts'

/** A request as a server of the tests sees it: all that has arrived when the client waits for an answer. */
export type SeenRequest = {
  text: string
  /** The number of the connection, from 1. */
  connection: number
  /** Requests on this connection, from 1. */
  order: number
}

/** Returns the bytes to send, or sends them itself. */
type Respond = (request: SeenRequest, socket: Socket) => string | undefined

export const optionsWith = (...lines: string[]) =>
  ['ICAP/1.0 200 OK', 'Methods: RESPMOD, REQMOD', 'ISTag: "tag-1"', ...lines, 'Encapsulated: null-body=0', '', ''].join(
    '\r\n',
  )
export const usualOptions = optionsWith('Service: Test 1', 'Allow: 204', 'Options-TTL: 3600')
export const previewOptions = optionsWith('Allow: 204', 'Preview: 8', 'Transfer-Preview: *')
export const noContent = 'ICAP/1.0 204 No Content\r\nISTag: "tag-1"\r\nEncapsulated: null-body=0\r\n\r\n'
export const goOn = 'ICAP/1.0 100 Continue\r\n\r\n'

/** A response with an HTTP message. */
export function toMessage(body: string | undefined, { head = 'HTTP/1.1 200 OK', more = '', section = 'res' } = {}) {
  const inner = `${head}\r\nContent-Type: text/plain\r\n\r\n`
  const layout = `${section}-hdr=0, ${body === undefined ? 'null-body' : `${section}-body`}=${inner.length}`
  const chunks = body === undefined ? '' : `${toChunks(body)}0\r\n\r\n`
  return `ICAP/1.0 200 OK\r\nISTag: "tag-1"\r\n${more}Encapsulated: ${layout}\r\n\r\n${inner}${chunks}`
}

const toChunks = (body: string) => (body === '' ? '' : `${body.length.toString(16)}\r\n${body}\r\n`)

/** The clear body of a request without a preview. */
export const toBody = (text: string) => /\r\n\r\n[0-9a-f]+\r\n(.*)\r\n0\r\n\r\n$/s.exec(text)?.[1] ?? ''

/**
 * A server that answers by `respond`, once for OPTIONS and once whenever a client has sent the end of a body. An early
 * one answers to the first bytes, and reads no more.
 */
export async function startIcapServer(respond: Respond, isEarly = false, path?: string) {
  const sockets = new Set<Socket>()
  const seen: SeenRequest[] = []
  let connections = 0
  const server = createServer((socket) => {
    sockets.add(socket)
    const connection = ++connections
    let order = 0
    let text = ''
    socket.on('error', () => {})
    socket.on('data', (chunk) => {
      text += chunk.toString('latin1')
      const isOptions = text.startsWith('OPTIONS')
      const isWhole = isOptions ? text.endsWith('\r\n\r\n') : /(?:^|\r\n)0(?:; ieof)?\r\n\r\n$/.test(text)
      if (!isWhole && !isEarly) return
      if (!isWhole) socket.pause()
      const request = { text, connection, order: ++order }
      seen.push(request)
      text = ''
      const answer = respond(request, socket)
      if (answer !== undefined) socket.write(answer, 'latin1')
    })
  })
  const place = path === undefined ? { port: 0, host: '127.0.0.1' } : { path }
  await new Promise<void>((resolve) => server.listen(place, resolve))
  const { port } = server.address() as { port: number }
  return {
    port,
    seen,
    countConnections: () => connections,
    dropConnections: () => {
      for (const socket of sockets) socket.destroy()
    },
    close() {
      for (const socket of sockets) socket.destroy()
      server.close()
    },
  }
}

type Change = {
  method?: 'RESPMOD' | 'REQMOD'
  usesPreview?: boolean
  threatHeader?: ThreatHeader
  concurrency?: number
}

export function openClient(port: number, change: Change = {}) {
  const { method = 'RESPMOD', usesPreview = true, threatHeader, concurrency = 4 } = change
  const service = { url: `icap://127.0.0.1:${port}/avscan`, host: `127.0.0.1:${port}`, method, userAgent: 'Test' }
  return openIcapAdapter({ address: { host: '127.0.0.1', port }, service, usesPreview, threatHeader }, concurrency)
}

type ScanOptions = { text?: string; signal?: AbortSignal; isEarly?: boolean }

const neverAborted = new AbortController().signal

/** Starts a server, scans the content once, and ends both. */
export async function scanOnce(
  respond: Respond,
  { text = 'some content', signal = neverAborted, isEarly = false, ...change }: Change & ScanOptions = {},
) {
  const server = await startIcapServer(respond, isEarly)
  const adapter = openClient(server.port, change)
  try {
    return await adapter.scan(newContent(text), { signal, fileName: 'a.txt' })
  } finally {
    await adapter.close()
    server.close()
  }
}

/** Answers OPTIONS, and every scan with `answer`. */
export const answering =
  (answer: string, options = usualOptions): Respond =>
  ({ text }) =>
    text.startsWith('OPTIONS') ? options : answer
