import { isIP, type Socket } from 'node:net'
import { connect as startTls } from 'node:tls'
import type { buildConnector, Client, Dispatcher } from 'undici'
import type { AddressPolicy } from '../domain/scans/web-address.ts'
import { connectTimeoutMessage, dialFirst, enterTunnel, openSocket, whenEvent } from './dial.ts'
import { noPublicAddress, OutboundError } from './outbound-error.ts'
import { makeResolveName, type ResolveName } from './resolve-name.ts'
import { withinTime } from './time-limit.ts'

export type GuardedAgent = {
  /**
   * Provides a client for one exchange with one origin, on a new connection. When `use` ends or `signal` aborts, the
   * connection is closed, even while it is being opened, which undici alone would continue.
   */
  withClient<T>(origin: string, signal: AbortSignal, use: (client: Client) => Promise<T>): Promise<T>
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
    async withClient(origin, signal, use) {
      // Imported here, because undici takes an eighth of the start of a service, and not every service calls others.
      const { Client } = await import('undici')
      signal.throwIfAborted()
      const ended = new AbortController()
      const connect: buildConnector.connector = (target, callback) => {
        openConnection(target, ended.signal).then(
          (socket) => callback(null, socket),
          (error) => callback(error, null),
        )
      }
      // No keep-alive: a connection that the other side has just closed would fail the next exchange. The timeouts of
      // undici are off, because interim responses reset them; callers set their own.
      const options = { pipelining: 0, maxHeaderSize: maxHeaderBytes, headersTimeout: 0, bodyTimeout: 0 }
      const client = new Client(origin, { ...options, connect })
      const end = () => {
        ended.abort(signal.reason)
        return client.destroy(toError(signal.reason))
      }
      signal.addEventListener('abort', end, { once: true })
      try {
        return await use(client)
      } catch (error) {
        signal.throwIfAborted()
        throw error
      } finally {
        signal.removeEventListener('abort', end)
        await end()
      }
    },
  }

  async function openConnection(target: buildConnector.Options, signal: AbortSignal): Promise<Socket> {
    const isSecure = target.protocol === 'https:'
    const host = target.hostname.replace(/\.$/, '')
    const port = Number(target.port || (isSecure ? 443 : 80))
    const addresses = await findAddresses(host, signal)
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

const toError = (reason: unknown) => (reason instanceof Error ? reason : null)

/** Limit on interim responses such as Early Hints. No server has a reason to send more. */
const maxInterimResponses = 20

/** Sends a request. Throws `sentence` when the other side sends interim responses without end. */
export async function sendRequest(
  client: Client,
  options: Omit<Dispatcher.RequestOptions, 'onInfo'>,
  sentence: string,
): Promise<Dispatcher.ResponseData> {
  let interimResponses = 0
  const response = await client.request({
    ...options,
    onInfo() {
      interimResponses += 1
      if (interimResponses > maxInterimResponses) throw new OutboundError(sentence)
    },
  })
  // Closing the client makes the body emit its error again; without a listener it would end the process.
  response.body.on('error', () => {})
  return response
}
