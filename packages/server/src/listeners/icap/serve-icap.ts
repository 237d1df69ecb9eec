import { IcapFault } from '../../domain/icap/icap-message.ts'
import { type IcapEvent, newIcapParser } from '../../domain/icap/icap-parser.ts'
import { type Connection, IncompleteRequest } from '../connection.ts'
import { type IcapRequest, parseRequest, readMessage } from './icap-request.ts'
import {
  type IcapHeaders,
  makeResponder,
  makeTrickle,
  type Responder,
  type ResponderDeps,
  toIcapHead,
  toRejection,
} from './icap-response.ts'
import { cleanDecision, type Decision, type MessageScanDeps, newMessageScan } from './message-scan.ts'

type Deps = MessageScanDeps &
  ResponderDeps & {
    /** Whether the service `avscan` blocks content that cannot be scanned, or lets it through. */
    onError: 'block' | 'allow'
    /** Whether the beginning of a response leaves before its verdict, for Squid 5. */
    trickles: boolean
    maxConnections: number
  }

const serviceName = 'avscan'
/** The service for clients that tell content that could not be scanned from infected content. */
const errorServiceName = 'avscan-errors'
const idleMs = 120_000
const headMs = 30_000
const previewBytes = 1024
const optionsTtlSeconds = 3600

/** Serves one client, usually a proxy: one request after the other, until either side closes the connection. */
export async function serveIcap(connection: Connection, deps: Deps) {
  const parser = newIcapParser(parseRequest)
  let exchange: ReturnType<typeof newExchange> | undefined
  let responder: Responder | undefined
  let isOptions = false
  let isIdle = true
  try {
    connection.expectWithin(idleMs)
    for await (const chunk of connection.chunks()) {
      if (isIdle) connection.expectWithin(headMs)
      isIdle = false
      for (const event of parser.push(chunk)) if (!(await handle(event))) return
    }
    if (exchange !== undefined || parser.hasUnparsed()) throw new IncompleteRequest()
  } catch (error) {
    if (!(error instanceof IcapFault)) throw error
    if (responder?.hasBegun() === true) throw new IncompleteRequest()
    await connection.send(toRejection(error, deps.findTag()))
  } finally {
    await exchange?.abort()
  }

  /** Returns whether the connection stays open. */
  async function handle(event: IcapEvent<IcapRequest>): Promise<boolean> {
    switch (event.kind) {
      case 'head': {
        if (event.head.service !== serviceName && event.head.service !== errorServiceName) {
          throw new IcapFault(404, `The services are icap://<host>:<port>/${serviceName} and ${errorServiceName}.`)
        }
        connection.setBusy(true)
        isOptions = event.head.method === 'OPTIONS'
        responder = makeResponder(connection, event, deps)
        exchange = newExchange(connection, event, { ...deps, responder })
        await exchange.begin()
        return true
      }
      case 'content':
        return (await exchange?.receive(event.bytes)) ?? false
      case 'preview-end': {
        if (exchange?.isDecided() === true) return finish(true)
        exchange?.endPreview()
        await connection.send(toIcapHead(100, {}, undefined))
        parser.continueAfterPreview()
        return true
      }
      case 'end':
        return finish(event.inPreview)
    }
  }

  async function finish(inPreview: boolean): Promise<boolean> {
    const staysOpen = (await exchange?.finish(inPreview)) ?? false
    if (!isOptions) connection.noteVerdict()
    exchange = undefined
    responder = undefined
    connection.setFailureReply(undefined)
    connection.setBusy(false)
    isIdle = true
    connection.expectWithin(idleMs)
    return staysOpen && !connection.isStopping()
  }
}

/** Handles one request: scans its message as it arrives, and sends the response. */
function newExchange(
  connection: Connection,
  event: IcapEvent<IcapRequest> & { kind: 'head' },
  deps: Deps & { responder: Responder },
) {
  const { head: request } = event
  const { responder } = deps
  const hasBody = request.layout.body !== 'null-body'
  const reportsErrors = request.service === errorServiceName
  const { maxBytes } = deps.scans
  const message = readMessage(request, event.headers, maxBytes)
  const scan = newMessageScan(message, deps)
  // A client that takes 204 keeps the body itself, and waits without harm.
  const canTrickle = deps.trickles && request.method === 'RESPMOD' && !request.allows204
  const trickle = canTrickle ? makeTrickle(responder, { ...message, ...request }) : undefined
  /** True while the body is sent back as it arrives, because it is let through unscanned. */
  let isRelaying = false
  let bytes = 0

  return {
    async begin() {
      if (!hasBody) return
      connection.expectNothing()
      await scan.begin()
      if (isLetThrough(scan.findDecision()) && request.preview === undefined) await startRelay()
      connection.expectContent()
    },

    endPreview: () => trickle?.endPreview(),

    /** True when the decision is made before the end of the message. */
    isDecided: () => scan.findDecision() !== undefined,

    /** Returns false when the response was sent and the rest of the body is not needed. */
    async receive(chunk: Buffer): Promise<boolean> {
      bytes += chunk.length
      if (isRelaying) {
        await responder.sendPart(chunk)
        return true
      }
      if (scan.findDecision() === undefined) {
        await scan.write(chunk)
        await (scan.findDecision() === undefined ? trickle?.receive(chunk) : afterDecision(chunk))
      }
      if (scan.findDecision() === undefined) return true
      // Content that is let through must be received completely, whatever its length.
      if (bytes <= maxBytes || isLetThrough(scan.findDecision())) return true
      await respond({ canSend204: false, closes: true })
      return false
    },

    /** Sends the response and returns whether the connection stays open. `inPreview`: the client accepts 204 now. */
    async finish(inPreview: boolean): Promise<boolean> {
      connection.expectNothing()
      let staysOpen = !request.closes
      if (request.method === 'OPTIONS') await responder.sendOptions(toOptions(deps))
      else if (isRelaying) await responder.sendEnd()
      else staysOpen = await respond({ canSend204: request.allows204 || inPreview, closes: request.closes })
      await scan.abort()
      return staysOpen
    },

    abort: scan.abort,
  }

  function isLetThrough(decision: Decision | undefined): boolean {
    return decision?.verdict.is === 'not-scanned' && deps.onError === 'allow' && !reportsErrors
  }

  /** Handles the chunk with which the decision was made: the scan did not keep it. */
  async function afterDecision(chunk: Buffer) {
    if (isLetThrough(scan.findDecision())) await startRelay()
    if (isRelaying) await responder.sendPart(chunk)
    else await scan.abort()
  }

  /**
   * Starts to send the message back: the content received so far, then what follows. A client with 204 needs neither.
   */
  async function startRelay() {
    if (request.allows204) return
    isRelaying = true
    if (trickle?.hasBegun() !== true) await responder.sendMessageHead()
    const received = await scan.takeContent()
    if (received !== undefined) await (trickle?.sendRest(received) ?? responder.sendContent(received))
  }

  async function respond(options: { canSend204: boolean; closes: boolean }): Promise<boolean> {
    const { decision, content } = hasBody ? await scan.finish() : { decision: cleanDecision }
    const shown = isLetThrough(decision) ? cleanDecision : decision
    if (trickle?.hasBegun() === true) {
      // A body without its last chunk is none: the proxy breaks the connection to its client off.
      if (shown.verdict.is !== 'clean' || content === undefined) return false
      await trickle.complete(content)
      return !options.closes
    }
    return responder.sendDecision(shown, content, { ...options, reportsErrors })
  }
}

const toOptions = ({ server, maxConnections }: Deps): IcapHeaders => ({
  Methods: 'REQMOD, RESPMOD',
  Service: server,
  'Max-Connections': String(maxConnections),
  'Options-TTL': String(optionsTtlSeconds),
  Allow: '204',
  Preview: String(previewBytes),
  'Transfer-Preview': '*',
})
