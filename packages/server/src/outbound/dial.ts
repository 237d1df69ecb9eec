import { connect, type Socket } from 'node:net'
import { OutboundError } from './outbound-error.ts'
import { withinTime } from './time-limit.ts'

/** A name with a thousand addresses is tried at this many. */
const maxAttempts = 6

export const tooSlow = 'The host did not complete a connection in time.'

/** Tries one address after the other, each with its share of the time that is left. */
export async function dialFirst(
  addresses: readonly string[],
  limit: { ms: number; signal: AbortSignal },
  dial: (address: string, signal: AbortSignal) => Promise<Socket>,
): Promise<Socket> {
  const endsAt = performance.now() + limit.ms
  const tried = mixFamilies(addresses).slice(0, maxAttempts)
  let failure: unknown
  for (const [index, address] of tried.entries()) {
    const ms = Math.max(1, (endsAt - performance.now()) / (tried.length - index))
    try {
      return await withinTime({ ms, signal: limit.signal, sentence: tooSlow }, (signal) => dial(address, signal))
    } catch (error) {
      limit.signal.throwIfAborted()
      failure ??= error
    }
  }
  throw failure ?? new OutboundError('The name of the host could not be resolved.')
}

/** A connection to exactly this address. */
export async function openSocket(to: { address: string; port: number }, signal: AbortSignal): Promise<Socket> {
  signal.throwIfAborted()
  // No `lookup` can come into play: the address is a literal.
  const socket = connect({ host: to.address, port: to.port, noDelay: true, autoSelectFamily: false })
  return await whenEvent(socket, 'connect', signal)
}

/** The socket after its event; destroyed when an error, its end or the signal comes first. */
export async function whenEvent<T extends Socket>(socket: T, event: string, signal: AbortSignal): Promise<T> {
  const { promise, resolve, reject } = Promise.withResolvers<T>()
  const onEvent = () => resolve(socket)
  const onClose = () => reject(new OutboundError('The host closed the connection before its answer was complete.'))
  const onAbort = () => reject(signal.reason)
  // For good: an error that comes when nobody listens would end the process.
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

/** Alternates between IPv4 and IPv6, so that one family that leads nowhere does not use up all attempts. */
function mixFamilies(addresses: readonly string[]): string[] {
  const six = addresses.filter((address) => address.includes(':'))
  const four = addresses.filter((address) => !address.includes(':'))
  const longer = Math.max(six.length, four.length)
  return Array.from({ length: longer }, (_, at) => [four[at], six[at]])
    .flat()
    .filter((address) => address !== undefined)
}
