import { setTimeout as sleep } from 'node:timers/promises'
import type { PostgresHost } from '../runtime/postgres-url.ts'

/** A server that accepts writes. A server that was promoted later has a higher timeline. */
export type Primary = { timeline: string }

/** SQLSTATE 57P03 (cannot connect now) makes this an outage in which nothing was sent, so nothing was committed. */
class NoPrimary extends Error {
  readonly code = '57P03'
}

/** How long the search waits for other servers after the first that accepts writes. */
const graceMs = 1000

/**
 * Asks all servers at once and returns the primary. While a failover is under way two of them may accept writes: the
 * newer timeline wins, because the other server is the old primary.
 */
export async function findPrimary(
  hosts: PostgresHost[],
  examine: (host: PostgresHost) => Promise<Primary>,
): Promise<PostgresHost> {
  const found: (Primary & { host: PostgresHost })[] = []
  const faults: string[] = []
  const first = Promise.withResolvers<void>()
  const all = hosts.map(async (host) => {
    try {
      found.push({ host, ...(await examine(host)) })
      first.resolve()
    } catch (error) {
      const { message, code } = error as Error & { code?: string }
      faults.push(`${toName(host)}: ${message || code}`)
    }
  })
  await Promise.race([Promise.all(all), first.promise.then(() => sleep(graceMs, undefined, { ref: false }))])
  const [newest] = found.toSorted((a, b) => (a.timeline < b.timeline ? 1 : -1))
  if (newest !== undefined) return newest.host
  throw new NoPrimary(`none of the ${hosts.length} servers is a primary that accepts writes (${faults.join('; ')})`)
}

export const toName = ({ host, port }: PostgresHost) => (host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`)
