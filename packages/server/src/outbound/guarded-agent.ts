import type { IncomingMessage } from 'node:http'
import { isIP, type Socket } from 'node:net'
import { connect as startTls } from 'node:tls'
import type { AddressPolicy } from '../domain/scans/web-address.ts'
import { request as startRequest } from '../runtime/node-http.ts'
import {
  connectTimeoutMessage,
  dialFirst,
  enterTunnel,
  makeResolveName,
  openSocket,
  type ResolveName,
  whenEvent,
} from './dial.ts'
import { noPublicAddress, OutboundError, toOutboundError, withinTime } from './outbound-error.ts'

type OutboundRequest = {
  url: URL
  method: 'GET' | 'POST'
  headers: Record<string, string>
  /** The path and query to ask for, in place of those of the URL. */
  requestTarget?: string | undefined
  body?: Buffer
  /** Called when the request is about to be sent. Nothing is sent if it throws. */
  onConnected?(peer: Peer): void
}

/** The addresses of the other side, as the policy sees them. */
export type Peer = {
  /** All addresses of the host are public. */
  isPublic: boolean
  /** All addresses of the host are in networks that the operator has opened, and none of them is public. */
  isOpened: boolean
}

type UseResponse<T> = (response: IncomingMessage, peer: Peer) => Promise<T>

export type GuardedAgent = {
  /**
   * Sends a request on a new connection and passes the response to `use`, with its body unread. The connection is closed
   * when `use` ends or `signal` aborts, even while it is being opened. Failures of the other side are OutboundErrors.
   */
  exchange<T>(request: OutboundRequest, signal: AbortSignal, use: UseResponse<T>): Promise<T>
}

const maxHeaderBytes = 16 * 1024

/**
 * Connects only to addresses that the policy allows. The check is part of connecting: a name is resolved once, all of its
 * addresses are checked, and a checked address is dialled, so a name that changes its address afterwards has no effect.
 *
 * A proxy gets the checked address instead of the name, for http and https alike. Whether the proxy dials this address
 * cannot be verified from here.
 */
export function makeGuardedAgent(deps: {
  policy: AddressPolicy
  /** Time for the connection including TLS; 10 s by default. */
  connectMs?: number
  /** Time to resolve the name; 5 s by default. */
  resolveMs?: number
  proxy?: URL | undefined
  resolve?: ResolveName
}): GuardedAgent {
  const { policy, connectMs = 10_000, resolveMs = 5_000, proxy, resolve = makeResolveName() } = deps

  return {
    async exchange(request, signal, use) {
      signal.throwIfAborted()
      let socket: Socket | undefined
      const close = () => socket?.destroy()
      signal.addEventListener('abort', close, { once: true })
      try {
        const peer: Peer = { isPublic: false, isOpened: false }
        socket = await openConnection(request.url, peer, signal).catch(throwOutbound)
        // The signal may have aborted while nothing listened to it.
        signal.throwIfAborted()
        request.onConnected?.(peer)
        return await use(await getResponse(socket, request).catch(throwOutbound), peer)
      } catch (error) {
        signal.throwIfAborted()
        throw error
      } finally {
        signal.removeEventListener('abort', close)
        close()
      }
    },
  }

  async function openConnection(url: URL, peer: Peer, signal: AbortSignal): Promise<Socket> {
    const isSecure = url.protocol === 'https:'
    const host = url.hostname.replace(/^\[|\]$|\.$/g, '')
    const port = Number(url.port || (isSecure ? 443 : 80))
    const addresses = await findAddresses(host, signal)
    peer.isPublic = addresses.every(policy.isPublic)
    peer.isOpened = !addresses.some(policy.isPublic)
    return await withinTime({ ms: connectMs, signal, sentence: connectTimeoutMessage }, async (within) => {
      const socket = await dialFirst(addresses, { ms: connectMs, signal: within }, (address, one) =>
        proxy === undefined ? openDirect(address, port, one) : openThrough(proxy, address, port, one),
      )
      return isSecure ? await secure(socket, host, within) : socket
    })
  }

  /** Returns the addresses of a host. Throws when the policy forbids any of them, because such a name is an attack. */
  async function findAddresses(host: string, signal: AbortSignal): Promise<string[]> {
    if (isIP(host) !== 0) {
      if (!policy.isAllowed(host)) throw new OutboundError('The address of the host is not public.')
      return [host]
    }
    const addresses = await resolveInTime(host, signal)
    if (!addresses.every(policy.isAllowed)) throw new OutboundError(noPublicAddress)
    return addresses
  }

  async function resolveInTime(name: string, signal: AbortSignal): Promise<string[]> {
    const sentence = 'The name of the host could not be resolved in time.'
    return await withinTime({ ms: resolveMs, signal, sentence }, (within) => resolve(name, within))
  }

  async function openDirect(address: string, port: number, signal: AbortSignal): Promise<Socket> {
    const socket = await openSocket({ address, port }, signal)
    if (policy.isAllowed(socket.remoteAddress ?? '')) return socket
    socket.destroy()
    throw new OutboundError('The address of the host is not public.')
  }

  async function openThrough(via: URL, address: string, port: number, signal: AbortSignal): Promise<Socket> {
    const name = via.hostname.replace(/^\[|\]$/g, '')
    const addresses = isIP(name) === 0 ? await resolveInTime(name, signal) : [name]
    const socket = await dialFirst(addresses, { ms: connectMs, signal }, (proxyAddress, within) =>
      openSocket({ address: proxyAddress, port: Number(via.port || 80) }, within),
    )
    return await enterTunnel(socket, { address, port, proxy: via }, signal)
  }
}

/** Starts TLS on a connection to a checked address. The certificate must match the requested host. */
async function secure(socket: Socket, host: string, signal: AbortSignal): Promise<Socket> {
  const secured = startTls({
    socket,
    host,
    ALPNProtocols: ['http/1.1'],
    ...(isIP(host) === 0 ? { servername: host } : {}),
  })
  try {
    return await whenEvent(secured, 'secureConnect', signal)
  } catch (error) {
    socket.destroy()
    throw error
  }
}

/** Limit on interim responses such as Early Hints. No server has a reason to send more. */
const maxInterimResponses = 20

/** Sends the request on the connection, and returns its response. Interim responses are skipped, also a 100 unasked. */
function getResponse(socket: Socket, request: OutboundRequest): Promise<IncomingMessage> {
  const { url, method, headers, body } = request
  const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>()
  const outgoing = startRequest({
    createConnection: () => socket,
    method,
    path: request.requestTarget ?? `${url.pathname}${url.search}`,
    headers: { host: url.host, ...headers },
    maxHeaderSize: maxHeaderBytes,
  })
  let interimResponses = 0
  let received: IncomingMessage | undefined
  outgoing.on('information', () => {
    if (++interimResponses > maxInterimResponses) fail(new OutboundError('The host sent only interim responses.'))
  })
  outgoing.once('upgrade', () => fail(new OutboundError('The host did not send a valid HTTP response.')))
  outgoing.once('response', (response) => {
    received = response
    // Closing the connection makes the body emit an error; without a listener it would end the process.
    response.on('error', () => {})
    resolve(response)
  })
  outgoing.on('error', fail)
  outgoing.end(body)
  return promise

  /** An error in the middle of a response is that of its body; what follows a whole response does not matter. */
  function fail(error: Error) {
    if (received === undefined) socket.destroy()
    else if (!received.complete) received.destroy(error)
    reject(error)
  }
}

function throwOutbound(error: unknown): never {
  throw toOutboundError(error)
}
