import { randomUUID } from 'node:crypto'
import type { Content } from '../../domain/content/content.ts'
import { Problem } from '../../domain/problem.ts'
import type { Line } from '../connection.ts'
import { type ListenerScan, type ListenerScans, maxBytes } from '../listener-scan.ts'
import { type IcapHeaders, lastChunk, toChunk, toIcapHead } from './answers.ts'
import { toBlockHeaders, toBlockPage } from './block-page.ts'
import { type Decision, toDecision, toFailure } from './decision.ts'
import type { IcapStatus } from './fault.ts'
import { newFormScans } from './form-scans.ts'
import type { IcapEvent } from './icap-parser.ts'
import { readMessage } from './message.ts'

export type ExchangeDeps = {
  scans: ListenerScans
  /** What becomes of content that cannot be scanned. */
  onError: 'block' | 'allow'
  /** Changes whenever a verdict could. */
  findTag(): string
  /** `Assay 0.1.0` */
  server: string
  maxConnections: number
  reportUnscanned(about: { reference: string; reason: string }): void
}

const previewBytes = 1024
const optionsTtlSeconds = 3600

/** One request and its answer. */
export function newExchange(line: Line, { request, headers }: IcapEvent & { kind: 'request' }, deps: ExchangeDeps) {
  const message = readMessage(request, headers)
  const hasBody = request.layout.body !== 'null-body'
  const ownHeader = request.method === 'REQMOD' ? 'req-hdr' : 'res-hdr'
  const bodyName = request.method === 'REQMOD' ? 'req-body' : 'res-body'
  const form = message.boundary === undefined ? undefined : newFormScans(deps.scans, message.boundary, leaveUnscanned)
  let scan: ListenerScan | undefined
  let decision: Decision | undefined
  /** Bytes that go straight back, because they are let through unscanned. */
  let isRelaying = false
  let bytes = 0

  return {
    async begin() {
      if (!hasBody) return
      line.expectNothing()
      if (message.obstacle !== undefined) decision = leaveUnscanned(message.obstacle)
      else {
        try {
          scan = await deps.scans.begin()
        } catch (error) {
          decision = toFailure(error)
        }
      }
      if (isLetThrough() && request.preview === undefined) await startRelay(undefined)
      line.expectContent()
    },

    /** Before the end of the message. */
    isDecided: () => decision !== undefined,

    /** False when the answer went out already and the rest of the body is of no use. */
    async receive(chunk: Buffer): Promise<boolean> {
      bytes += chunk.length
      if (isRelaying) {
        await relay(chunk)
        return true
      }
      if (decision === undefined) {
        try {
          await form?.write(chunk)
          await scan?.write(chunk)
          return true
        } catch (error) {
          decision = isTooLarge(error) ? leaveUnscanned('ContentTooLarge') : toFailure(error)
        }
        if (isLetThrough()) {
          await startRelay(scan)
          if (isRelaying) await relay(chunk)
        }
        if (!isRelaying) await scan?.abort()
      }
      // To be let through, it must come to its end, however long it is.
      if (bytes <= maxBytes || isLetThrough()) return true
      await answer(false, true)
      return false
    },

    /** Whether the connection stays. `inPreview`: the client takes a 204 now, whatever it said before. */
    async finish(inPreview: boolean): Promise<boolean> {
      line.expectNothing()
      if (request.method === 'OPTIONS') {
        await sendHead(200, toOptions(deps))
        return !request.closes
      }
      if (isRelaying) await line.send(lastChunk)
      else await answer(request.allows204 || inPreview, request.closes)
      await letGo()
      return !request.closes
    },

    /** The client is gone, or has said what cannot be understood. */
    abandon: letGo,
  }

  async function letGo() {
    await form?.abort()
    await scan?.abort()
  }

  function leaveUnscanned(reason: string): Decision {
    const reference = randomUUID()
    deps.reportUnscanned({ reference, reason })
    return { is: 'unscanned', name: reason, reference }
  }

  function isLetThrough(): boolean {
    return decision?.is === 'unscanned' && deps.onError === 'allow'
  }

  /** Without a 204 the message has to go back: what is here already, and what comes. */
  async function startRelay(held: ListenerScan | undefined) {
    if (request.allows204) return
    isRelaying = true
    await sendMessageHead(bodyName)
    if (held !== undefined) await sendContent(await held.surrender())
  }

  async function answer(may204: boolean, closes: boolean) {
    let content: Content | undefined
    if (decision === undefined && hasBody) {
      const inForm = await form?.finish()
      if (inForm?.is === 'threat' || inForm?.is === 'failed') decision = inForm
      else {
        const whole = await conclude()
        content = whole.content
        decision = whole.decision.is === 'pass' ? (inForm ?? whole.decision) : whole.decision
      }
    }
    const end: Decision = decision === undefined || isLetThrough() ? { is: 'pass' } : decision
    const last = closes ? { Connection: 'close' } : {}
    if (end.is === 'failed') {
      const { status, sentence, retryAfterSeconds } = end
      const retry = retryAfterSeconds === undefined ? undefined : String(retryAfterSeconds)
      await sendHead(status, { ...last, ...nullBody, 'Retry-After': retry, 'X-Assay-Detail': sentence })
    } else if (end.is !== 'pass') {
      const block = { because: end.is, name: end.name, reference: end.reference }
      const page = toBlockPage(block)
      const layout = `res-hdr=0, res-body=${page.head.length}`
      await sendHead(200, { ...last, ...toBlockHeaders(block), Encapsulated: layout })
      await line.send(Buffer.concat([page.head, ...toChunk(page.body), Buffer.from(lastChunk)]))
    } else if (may204) await sendHead(204, { ...last, ...nullBody })
    else if (content === undefined && !hasBody) await sendMessageHead('null-body')
    else {
      await sendMessageHead(bodyName)
      if (content !== undefined) await sendContent(content)
      await line.send(lastChunk)
    }
  }

  async function conclude(): Promise<{ decision: Decision; content: Content | undefined }> {
    try {
      if (scan === undefined) throw new Error('A scan neither began nor failed')
      const scanned = await scan.finish(message.contentName)
      return { decision: scanned === undefined ? { is: 'pass' } : toDecision(scanned.scan), content: scanned?.content }
    } catch (error) {
      return { decision: toFailure(error), content: undefined }
    }
  }

  async function sendMessageHead(body: string) {
    const own = headers[ownHeader]
    const layout = own === undefined ? `${body}=0` : `${ownHeader}=0, ${body}=${own.length}`
    await sendHead(200, { ...(request.closes ? { Connection: 'close' } : {}), Encapsulated: layout })
    if (own !== undefined) await line.send(own)
  }

  async function sendContent(content: Content) {
    for await (const part of content.read()) await relay(part)
  }

  async function relay(part: Buffer) {
    for (const piece of toChunk(part)) await line.send(piece)
  }

  function sendHead(status: IcapStatus, more: IcapHeaders) {
    return line.send(toIcapHead(status, { ISTag: deps.findTag(), Server: deps.server, ...more }))
  }
}

export type Exchange = ReturnType<typeof newExchange>

const nullBody = { Encapsulated: 'null-body=0' }

const isTooLarge = (error: unknown) => error instanceof Problem && error.refusal.kind === 'content-too-large'

const toOptions = ({ server, maxConnections }: ExchangeDeps): IcapHeaders => ({
  Methods: 'REQMOD, RESPMOD',
  Service: server,
  'Max-Connections': String(maxConnections),
  'Options-TTL': String(optionsTtlSeconds),
  Allow: '204',
  Preview: String(previewBytes),
  'Transfer-Preview': '*',
  ...nullBody,
})
