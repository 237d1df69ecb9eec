import { connect, isIPv6, type Socket } from 'node:net'
import { noPublicAddress, OutboundError } from './outbound-error.ts'
import { withinTime } from './time-limit.ts'

/** Limit on the addresses that are tried, because a name may have a thousand. */
const maxAttempts = 6

export const connectTimeoutMessage = 'The host did not complete a connection in time.'

/** Tries one address after the other, each for an equal share of the remaining time. */
export async function dialFirst(
  addresses: readonly string[],
  limit: { ms: number; signal: AbortSignal },
  dial: (address: string, signal: AbortSignal) => Promise<Socket>,
): Promise<Socket> {
  const endsAt = performance.now() + limit.ms
  const candidates = mixFamilies(addresses).slice(0, maxAttempts)
  let failure: unknown
  for (const [index, address] of candidates.entries()) {
    const ms = Math.max(1, (endsAt - performance.now()) / (candidates.length - index))
    try {
      return await withinTime({ ms, signal: limit.signal, sentence: connectTimeoutMessage }, (signal) =>
        dial(address, signal),
      )
    } catch (error) {
      limit.signal.throwIfAborted()
      failure ??= error
    }
  }
  throw failure ?? new OutboundError(noPublicAddress)
}

/** Opens a connection to exactly this address. */
export async function openSocket(to: { address: string; port: number }, signal: AbortSignal): Promise<Socket> {
  signal.throwIfAborted()
  // The address is a literal, so Node resolves no name here.
  const socket = connect({ host: to.address, port: to.port, noDelay: true, autoSelectFamily: false })
  return await whenEvent(socket, 'connect', signal)
}

/** Returns the socket after the event. An error, a close or the signal before it destroys the socket. */
export async function whenEvent<T extends Socket>(socket: T, event: string, signal: AbortSignal): Promise<T> {
  const { promise, resolve, reject } = Promise.withResolvers<T>()
  const onEvent = () => resolve(socket)
  const onClose = () => reject(new OutboundError('The host closed the connection before its response was complete.'))
  const onAbort = () => reject(signal.reason)
  // This listener stays: an error event without a listener would end the process.
  socket.on('error', () => {})
  socket.once(event, onEvent).once('error', reject).once('close', onClose)
  if (signal.aborted) onAbort()
  signal.addEventListener('abort', onAbort, { once: true })
  try {
    return await promise
  } catch (error) {
    socket.destroy()
    throw error
  } finally {
    socket.off(event, onEvent).off('error', reject).off('close', onClose)
    signal.removeEventListener('abort', onAbort)
  }
}

/** Alternates between IPv4 and IPv6, so that one unreachable family does not use up all attempts. */
function mixFamilies(addresses: readonly string[]): string[] {
  const six = addresses.filter((address) => address.includes(':'))
  const four = addresses.filter((address) => !address.includes(':'))
  const longer = Math.max(six.length, four.length)
  return Array.from({ length: longer }, (_, at) => [four[at], six[at]])
    .flat()
    .filter((address) => address !== undefined)
}

const maxProxyResponseBytes = 16 * 1024

/** Asks the proxy behind the socket to connect to an address. A refusal destroys the socket. */
export async function enterTunnel(
  socket: Socket,
  to: { address: string; port: number; proxy: URL },
  signal: AbortSignal,
): Promise<Socket> {
  const target = `${isIPv6(to.address) ? `[${to.address}]` : to.address}:${to.port}`
  socket.write(`CONNECT ${target} HTTP/1.1\r\nHost: ${target}\r\n${toAuthorization(to.proxy)}\r\n`)
  try {
    const status = await readProxyStatus(socket, signal)
    if (/^HTTP\/1\.[01] 2\d\d(?: |$)/.test(status)) return socket
    throw new OutboundError('The outbound proxy did not connect to the host.')
  } catch (error) {
    socket.destroy()
    throw error
  }
}

function toAuthorization({ username, password }: URL): string {
  if (username === '' && password === '') return ''
  const pair = `${decodeURIComponent(username)}:${decodeURIComponent(password)}`
  return `Proxy-Authorization: Basic ${Buffer.from(pair).toString('base64')}\r\n`
}

/** Reads the status line of the proxy. Bytes after its headers stay in the socket: they belong to the host. */
async function readProxyStatus(socket: Socket, signal: AbortSignal): Promise<string> {
  const { promise, resolve, reject } = Promise.withResolvers<string>()
  let seen = Buffer.alloc(0)
  const onReadable = () => {
    for (let chunk = socket.read(); chunk !== null; chunk = socket.read()) {
      seen = Buffer.concat([seen, chunk])
      const end = seen.indexOf('\r\n\r\n')
      if (end !== -1) {
        const rest = seen.subarray(end + 4)
        if (rest.length > 0) socket.unshift(rest)
        return resolve(seen.toString('latin1', 0, seen.indexOf('\r\n')))
      }
      if (seen.length > maxProxyResponseBytes)
        return reject(new OutboundError('The outbound proxy sent no valid response.'))
    }
  }
  const onEnd = () => reject(new OutboundError('The outbound proxy closed the connection.'))
  const onAbort = () => reject(signal.reason)
  socket.on('readable', onReadable).once('end', onEnd).once('error', reject).once('close', onEnd)
  if (signal.aborted) onAbort()
  signal.addEventListener('abort', onAbort, { once: true })
  try {
    return await promise
  } finally {
    socket.off('readable', onReadable).off('end', onEnd).off('error', reject).off('close', onEnd)
    signal.removeEventListener('abort', onAbort)
  }
}
