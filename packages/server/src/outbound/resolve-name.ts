import { Resolver } from 'node:dns/promises'
import { readFile, stat } from 'node:fs/promises'
import { noPublicAddress, OutboundError } from './outbound-error.ts'

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
