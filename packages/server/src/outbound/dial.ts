import { Resolver } from 'node:dns/promises'
import { readFile, stat } from 'node:fs/promises'
import { connect, isIPv6, type Socket } from 'node:net'
import { noPublicAddress, OutboundError, withinTime } from './outbound-error.ts'

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

/** Time to wait for the second address family after the first answer: some name servers never answer for IPv6. */
const otherFamilyMs = 500

/** Returns all addresses of a name. Throws when there is none. */
export type ResolveName = (name: string, signal: AbortSignal) => Promise<string[]>

/**
 * Resolves names with c-ares instead of getaddrinfo, which blocks one of libuv's four threads while a name server is
 * silent: four such names would stop all file access and lookups of the process. The price is that only the hosts file
 * and DNS are used, without search domains.
 */
export function makeResolveName(deps: { servers?: string[]; hostsFile?: string } = {}): ResolveName {
  const findInHostsFile = makeHostsFile(deps.hostsFile ?? '/etc/hosts')

  return async (name, signal) => {
    const host = name.toLowerCase().replace(/\.$/, '')
    // RFC 6761 forbids asking a name server for localhost. Only IPv4 is returned, so that a policy that allows
    // 127.0.0.0/8 is sufficient.
    if (host === 'localhost' || host.endsWith('.localhost')) return ['127.0.0.1']
    const hostsEntry = await findInHostsFile(host)
    if (hostsEntry !== undefined) return hostsEntry
    const addresses = await askServers(host, deps.servers, signal)
    if (addresses.length === 0) throw new OutboundError(noPublicAddress)
    return addresses
  }
}

async function askServers(name: string, servers: string[] | undefined, signal: AbortSignal): Promise<string[]> {
  signal.throwIfAborted()
  // A new resolver (0.03 ms) reads the current settings of the system, and cancelling it stops no other lookup.
  const resolver = new Resolver({ timeout: 1500, tries: 3 })
  if (servers !== undefined) resolver.setServers(servers)
  const cancel = () => resolver.cancel()
  signal.addEventListener('abort', cancel, { once: true })
  let timer: NodeJS.Timeout | undefined
  const startTimer = (addresses: string[]) => {
    timer ??= setTimeout(cancel, otherFamilyMs)
    return addresses
  }
  try {
    const questions = [resolver.resolve4(name).then(startTimer), resolver.resolve6(name).then(startTimer)]
    const answers = await Promise.allSettled(questions)
    signal.throwIfAborted()
    return answers.flatMap((answer) => (answer.status === 'fulfilled' ? answer.value : []))
  } finally {
    clearTimeout(timer)
    signal.removeEventListener('abort', cancel)
  }
}

/** Looks names up in the hosts file, which operators and Docker edit. It is read again after a change. */
function makeHostsFile(path: string): (name: string) => Promise<string[] | undefined> {
  let readAt: number | undefined
  let names = new Map<string, string[]>()
  return async (name) => {
    const changedAt = (await stat(path).catch(() => undefined))?.mtimeMs
    if (changedAt !== readAt) {
      names = parseHosts(changedAt === undefined ? '' : await readFile(path, 'utf8'))
      readAt = changedAt
    }
    return names.get(name)
  }
}

function parseHosts(text: string): Map<string, string[]> {
  const names = new Map<string, string[]>()
  for (const line of text.split('\n')) {
    const [address = '', ...listedNames] = line.replace(/#.*/, '').trim().toLowerCase().split(/\s+/)
    for (const name of listedNames) names.set(name, [...(names.get(name) ?? []), address])
  }
  return names
}
