import type { Socket } from 'node:net'
import {
  findOne,
  IcapFault,
  type Layout,
  listValues,
  noSections,
  type ParsedHeaders,
  parseEncapsulated,
  parseHeaders,
} from '../../../domain/icap/icap-message.ts'
import { type IcapEvent, newIcapParser } from '../../../domain/icap/icap-parser.ts'
import { EngineDown } from '../../../domain/ports/engines.ts'
import { waitForRoom } from '../../../runtime/memory.ts'
import { connectTo, type ServerAddress } from '../../../runtime/node-http.ts'

export type ResponseEvent = IcapEvent<IcapResponse>

/** A connection that is idle for longer may have been dropped by a firewall without a word. */
const maxIdleMs = 30_000
/** Reading stops while this much of a response has not been taken. */
const maxQueuedBytes = 1024 * 1024
const maxQueuedEvents = 1000
const maxCopiedBytes = 64 * 1024

/** A connection to an ICAP server, for one request after the other. */
export function openIcapConnection(address: ServerAddress) {
  // The connection outlives the scan for which it is opened, so it does not end with the signal of that scan.
  const socket: Socket = connectTo(address, {})
  const events = makeEventQueue(socket)
  let isBusy = false
  let hasAnswered = false
  let requests = 0
  let idleSince = 0

  function fail(reason: string, cause?: unknown) {
    events.fail(new EngineDown(reason, { cause }))
    socket.destroy()
  }

  socket.setNoDelay(true)
  socket.on('data', (chunk: Buffer) => {
    hasAnswered = true
    // Bytes without a request would be taken for the answer to the next one.
    if (!isBusy) return fail('the server sent bytes that no request asked for')
    try {
      events.parse(chunk)
    } catch (error) {
      fail(`the server sent a response that is not valid: ${(error as Error).message}`, error)
    }
  })
  socket.on('error', (error) => fail(error.message, error))
  socket.on('end', () => fail('the server closed the connection before the end of its response'))
  socket.on('close', () => fail('the connection was closed'))

  return {
    /** Begins a request. The events that follow are those of its response. */
    begin() {
      isBusy = true
      hasAnswered = false
      requests++
    },
    /** Ends a request whose response was read to its end. */
    end() {
      isBusy = false
      idleSince = performance.now()
      if (events.has() || events.hasUnparsed()) fail('the server sent more than one response')
    },
    canBeReused: () => !socket.destroyed && performance.now() - idleSince < maxIdleMs,
    /** A server may close an idle connection just when the next request is sent; it has not seen that request then. */
    wasClosedWhileIdle: () => events.hasFailed() && !hasAnswered && requests > 1,
    hasEvent: () => events.has() || events.hasFailed(),
    next: events.next,
    hasEnded: events.hasEnded,
    /**
     * Writes the parts at once. Returns a promise while the server is behind. `onWritten` is called only when the system
     * has taken all of them.
     */
    write(parts: Buffer[], onWritten?: () => void): Promise<void> | undefined {
      if (socket.destroyed) return undefined
      const bytes = parts.reduce((sum, part) => sum + part.length, 0)
      // For a small request, one plain write of a copy costs less than a gathered write.
      const isSmall = bytes <= maxCopiedBytes
      const note = (error?: Error | null) => {
        if (!error) onWritten?.()
      }
      const hasRoom = isSmall ? socket.write(Buffer.concat(parts), note) : writeGathered(socket, parts, note)
      // A server that answers early may read no more, so an answer ends the wait too.
      return hasRoom ? undefined : waitForRoom(socket, ['data'])
    },
    fail,
    close: () => void socket.destroy(),
  }
}

export type IcapConnection = ReturnType<typeof openIcapConnection>

/** The events of responses, until they are taken. */
function makeEventQueue(socket: Socket) {
  const parser = newIcapParser(parseResponse)
  const queue: ResponseEvent[] = []
  let queuedBytes = 0
  let waiting: PromiseWithResolvers<ResponseEvent> | undefined
  let failure: EngineDown | undefined
  const isFull = () => queuedBytes > maxQueuedBytes || queue.length > maxQueuedEvents

  function add(event: ResponseEvent) {
    if (waiting !== undefined) {
      waiting.resolve(event)
      waiting = undefined
      return
    }
    queue.push(event)
    if (event.kind === 'content') queuedBytes += event.bytes.length
    if (isFull()) socket.pause()
  }

  return {
    parse(chunk: Buffer) {
      for (const event of parser.push(chunk)) add(event)
    },
    fail(reason: EngineDown) {
      failure ??= reason
      waiting?.reject(failure)
      waiting = undefined
    },
    has: () => queue.length > 0,
    hasUnparsed: parser.hasUnparsed,
    hasFailed: () => failure !== undefined,
    /** Rejects when the connection is closed or the response cannot be understood. */
    next(): Promise<ResponseEvent> | ResponseEvent {
      const event = queue.shift()
      if (event === undefined) {
        if (failure !== undefined) return Promise.reject(failure)
        waiting = Promise.withResolvers<ResponseEvent>()
        return waiting.promise
      }
      if (event.kind === 'content') queuedBytes -= event.bytes.length
      if (!isFull()) socket.resume()
      return event
    },
    /** Takes what has arrived already. Returns whether that is the rest of the response. */
    hasEnded(): boolean {
      const rest = queue.splice(0)
      queuedBytes = 0
      socket.resume()
      return rest.findIndex(({ kind }) => kind === 'end') === rest.length - 1 && rest.length > 0
    },
  }
}

function writeGathered(socket: Socket, parts: Buffer[], onWritten: (error?: Error | null) => void): boolean {
  socket.cork()
  let hasRoom = true
  for (const [index, part] of parts.entries()) {
    hasRoom = socket.write(part, index === parts.length - 1 ? onWritten : undefined)
  }
  socket.uncork()
  return hasRoom
}

type IcapResponse = {
  status: number
  headers: ParsedHeaders
  layout: Layout
  /** A response has no preview. */
  preview: undefined
  /** The server closes the connection after the response. */
  closes: boolean
}

/** Parses the head of a response, without the empty line at its end. Errors and `100 Continue` may have no sections. */
function parseResponse(head: string): IcapResponse {
  const [first = '', ...lines] = head.split('\r\n')
  const [, digits] = /^ICAP\/1\.\d ([1-5]\d\d)(?: .*)?$/.exec(first) ?? []
  if (digits === undefined) throw new IcapFault(400, 'The status line is not valid.')
  const headers = parseHeaders(lines, 'kept')
  const encapsulated = findOne(headers, 'encapsulated')
  return {
    status: Number(digits),
    headers,
    layout:
      encapsulated === undefined
        ? noSections
        : parseEncapsulated(encapsulated, {
            headers: ['req-hdr', 'res-hdr'],
            bodies: ['req-body', 'res-body', 'opt-body', 'null-body'],
          }),
    preview: undefined,
    closes: listValues(headers, 'connection').includes('close'),
  }
}

/** The service that requests are for. */
export type IcapService = { url: string; host: string; method: 'RESPMOD' | 'REQMOD'; userAgent: string }

export const toOptionsRequest = ({ url, host, userAgent }: IcapService): Buffer =>
  toHead([`OPTIONS ${url} ICAP/1.0`, `Host: ${host}`, `User-Agent: ${userAgent}`, 'Encapsulated: null-body=0'])

/** The HTTP message that carries the content: a download for RESPMOD, an upload for REQMOD. */
export function toCarrier(method: IcapService['method'], fileName: string, bytes: number) {
  const target = `http://assay.invalid/${encodeURIComponent(fileName)}`
  // A precise media type could be one that the server does not scan. The content tells what it is.
  const body = ['Content-Type: application/octet-stream', `Content-Length: ${bytes}`]
  return method === 'RESPMOD'
    ? {
        request: toHead([`GET ${target} HTTP/1.1`, 'Host: assay.invalid']),
        response: toHead(['HTTP/1.1 200 OK', ...body]),
      }
    : { request: toHead([`POST ${target} HTTP/1.1`, 'Host: assay.invalid', ...body]), response: undefined }
}

/** The head of a request with the message around the content; the body follows in chunks. */
export function toModRequest(
  { url, host, method, userAgent }: IcapService,
  { request, response }: ReturnType<typeof toCarrier>,
  preview: number | undefined,
): Buffer {
  const offsets =
    response === undefined
      ? `req-hdr=0, req-body=${request.length}`
      : `req-hdr=0, res-hdr=${request.length}, res-body=${request.length + response.length}`
  const head = toHead([
    `${method} ${url} ICAP/1.0`,
    `Host: ${host}`,
    `User-Agent: ${userAgent}`,
    'Allow: 204',
    ...(preview === undefined ? [] : [`Preview: ${preview}`]),
    `Encapsulated: ${offsets}`,
  ])
  return Buffer.concat(response === undefined ? [head, request] : [head, request, response])
}

const toHead = (lines: string[]) => Buffer.from(`${lines.join('\r\n')}\r\n\r\n`, 'latin1')
