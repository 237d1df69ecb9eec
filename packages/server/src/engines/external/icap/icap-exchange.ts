import { createHash } from 'node:crypto'
import type { Content } from '../../../domain/content/content.ts'
import { lastChunk, lastChunkOfWhole, toChunk } from '../../../domain/icap/icap-message.ts'
import { EngineDown } from '../../../domain/ports/engines.ts'
import { freeBuffer } from '../../../runtime/memory.ts'
import { type Answer, ContentRefused } from '../adapter.ts'
import {
  type IcapConnection,
  type IcapService,
  type ResponseEvent,
  toCarrier,
  toModRequest,
} from './icap-connection.ts'
import { blockedContent, changedContent, findDoubt, findTag, listThreats, type ThreatHeader } from './icap-findings.ts'

const chunkBytes = 256 * 1024

/** `partial`: the server is content with the preview, so the verdict is not about the whole content. */
export type Exchange = {
  result: Pick<Answer, 'findings' | 'doubts'> | 'partial'
  tag: string | undefined
  /** The connection can take the next request. */
  isComplete: boolean
}

type Request = {
  service: IcapService
  content: Content
  fileName: string
  /** Bytes that are sent before the server decides whether it wants the rest; undefined for no preview. */
  preview: number | undefined
  /** The server answers 204 to content that it calls clean. */
  answers204: boolean
  threatHeader: ThreatHeader | undefined
}

type HeadEvent = ResponseEvent & { kind: 'head' }

/** How much of the content the server had when its response began. */
type Sent = 'all' | 'preview' | 'a part'

/** Sends content and reads what the server makes of it. */
export async function exchangeContent(connection: IcapConnection, request: Request): Promise<Exchange> {
  const { content, preview } = request
  const carrier = toCarrier(request.service.method, request.fileName, content.bytes)
  const body = makeBody(connection, content)
  const head = toModRequest(request.service, carrier, preview)
  await (preview === undefined ? body.sendAll([head]) : body.sendPreview(head, preview))
  let response = await readHead(connection)
  if (response.head.status === 100) {
    if (preview === undefined || body.findSent() === 'all') throw new EngineDown('the server asked for more than all')
    await body.sendAll([], preview)
    response = await readHead(connection)
  }
  const sent = body.findSent()
  const { result, hasEnded } = await judge(connection, response, { ...request, carrier, sent })
  const isComplete = hasEnded && sent !== 'a part' && !response.head.closes
  return { result, tag: findTag(response.head.headers), isComplete }
}

async function readHead(connection: IcapConnection): Promise<HeadEvent> {
  const event = await connection.next()
  if (event.kind !== 'head') throw new EngineDown('the server sent a body without a head')
  // The response that asks for the rest ends at once, and so does every response without a body.
  if (event.head.status === 100) await readEnd(connection)
  return event
}

async function readEnd(connection: IcapConnection) {
  const { kind } = await connection.next()
  if (kind !== 'end') throw new EngineDown('the server sent a body where none belongs')
}

function makeBody(connection: IcapConnection, content: Content) {
  let sent: Sent = 'a part'
  const noteAll = () => {
    sent = 'all'
  }

  return {
    /** The system has taken all bytes, or those of the preview. */
    findSent: () => sent,

    async sendPreview(head: Buffer, preview: number) {
      const pieces = preview === 0 ? [] : await readPieces(content, Math.min(preview, content.bytes))
      const isWhole = content.bytes <= preview
      const chunk = pieces.length === 0 ? [] : toChunk(...pieces)
      sent = 'preview'
      await connection.write([head, ...chunk, isWhole ? lastChunkOfWhole : lastChunk], isWhole ? noteAll : undefined)
    },

    /** Sends the content from an offset on. Stops when an answer arrives, because that one is not about the rest. */
    async sendAll(before: Buffer[], from = 0) {
      sent = 'a part'
      let parts = before
      let bytes = from
      for await (const pieces of group(content.read(from))) {
        if (connection.hasEvent()) return
        for (const piece of pieces) bytes += piece.length
        const isLast = bytes === content.bytes
        parts.push(...toChunk(...pieces), ...(isLast ? [lastChunk] : []))
        const room = connection.write(parts, () => {
          // Chunks from storage belong to this scan; content in memory stays for other engines.
          if (!content.isInMemory) for (const piece of pieces) freeBuffer(piece)
          if (isLast) noteAll()
        })
        if (isLast) return
        parts = []
        await room
      }
      if (bytes !== content.bytes) throw new Error(`The content has ${bytes} bytes where ${content.bytes} should be`)
      // Empty content has a body of no bytes.
      await connection.write([...parts, lastChunk], noteAll)
    },
  }
}

async function readPieces(content: Content, end: number): Promise<Buffer[]> {
  if (content.whole !== undefined) return end === 0 ? [] : [content.whole.subarray(0, end)]
  const pieces: Buffer[] = []
  for await (const piece of content.read(0, end)) if (piece.length > 0) pieces.push(piece)
  return pieces
}

/** Few large chunks cost both sides less than many small ones; very large ones are cut, so that an early answer is seen. */
async function* group(chunks: AsyncIterable<Buffer>): AsyncGenerator<Buffer[]> {
  let pieces: Buffer[] = []
  let bytes = 0
  for await (const chunk of chunks) {
    // A chunk of no bytes would end the body.
    if (chunk.length === 0) continue
    if (chunk.length > chunkBytes) {
      if (pieces.length > 0) yield pieces
      for (let at = 0; at < chunk.length; at += chunkBytes) yield [chunk.subarray(at, at + chunkBytes)]
    } else {
      pieces.push(chunk)
      bytes += chunk.length
      if (bytes < chunkBytes) continue
      yield pieces
    }
    pieces = []
    bytes = 0
  }
  if (pieces.length > 0) yield pieces
}

type Judged = { result: Exchange['result']; hasEnded: boolean }

async function judge(
  connection: IcapConnection,
  { head, headers }: HeadEvent,
  request: Request & { carrier: ReturnType<typeof toCarrier>; sent: Sent },
): Promise<Judged> {
  const { status } = head
  if (status !== 200 && status !== 204) {
    const doubt = findDoubt(head.headers)
    if (status >= 400 && doubt !== undefined) return { result: { findings: [], doubts: [doubt] }, hasEnded: false }
    throw new EngineDown(`the server answered with the status ${status}`)
  }
  const threats = listThreats(head.headers, headers, request.threatHeader)
  // The page that a server sends for a threat is of no interest, and may be long in coming.
  if (threats.length > 0) return { result: { findings: threats }, hasEnded: connection.hasEnded() }
  if (status === 204) {
    await readEnd(connection)
    if (request.sent === 'a part') throw new EngineDown('the server answered before it had the content')
    return { result: request.sent === 'all' ? { findings: [] } : 'partial', hasEnded: true }
  }
  const change = findChange({ head, headers }, request)
  if (change !== undefined) return { result: { findings: [change] }, hasEnded: connection.hasEnded() }
  return { result: { findings: await compareBody(connection, request) }, hasEnded: true }
}

/** The finding when the HTTP message that came back is not the one that was sent, as far as its headers tell. */
function findChange(
  { head: { layout }, headers }: Pick<HeadEvent, 'head' | 'headers'>,
  { service, carrier, content }: Parameters<typeof judge>[2],
): string | undefined {
  const isDownload = service.method === 'RESPMOD'
  const inner = headers[isDownload ? 'res-hdr' : 'req-hdr']?.toString('latin1')
  if (!isDownload && headers['res-hdr'] !== undefined) return blockedContent
  if (inner === undefined) throw new EngineDown('the server answered 200 without the message')
  if (isDownload) {
    const [, digits] = /^HTTP\/\d\.\d (\d{3})/.exec(inner) ?? []
    if (digits === undefined) throw new EngineDown('the server answered with a message that is not HTTP')
    if (digits !== '200') return blockedContent
  } else if (toFirstLine(inner) !== toFirstLine(carrier.request.toString('latin1'))) return changedContent
  if (/^content-encoding:/im.test(inner)) return changedContent
  if (layout.body === 'null-body') return content.bytes === 0 ? undefined : changedContent
  return layout.body === (isDownload ? 'res-body' : 'req-body') ? undefined : changedContent
}

const toFirstLine = (head: string) => head.slice(0, head.indexOf('\r\n'))

/**
 * Reads the content that came back. Content that is not byte for byte the same is a finding. The same content is clean
 * only from a server that cannot say so by 204, and that began to answer after it had all of the content: any other
 * passes back what it has not scanned, for example because it is too large.
 */
async function compareBody(
  connection: IcapConnection,
  { content, sent, answers204 }: Pick<Request, 'content' | 'answers204'> & { sent: Sent },
): Promise<string[]> {
  if (sent === 'a part') throw new ContentRefused(passedBack)
  const hash = createHash('sha256')
  let bytes = 0
  for (;;) {
    const event = await connection.next()
    if (event.kind === 'end') break
    if (event.kind !== 'content') throw new EngineDown('the server sent a response within a response')
    bytes += event.bytes.length
    if (bytes > content.bytes) return [changedContent]
    hash.update(event.bytes)
  }
  if (bytes !== content.bytes || hash.digest('hex') !== content.sha256) return [changedContent]
  if (answers204 || sent !== 'all') throw new ContentRefused(passedBack)
  return []
}

const passedBack =
  'the server passed the content back instead of answering 204, so nothing tells that it was scanned: ' +
  'see whether the service has a limit on the size, or sends data before the end of its scan'
