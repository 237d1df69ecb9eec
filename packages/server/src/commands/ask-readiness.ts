import { get as getPlain, type IncomingMessage } from 'node:http'
import { get as getSecure } from 'node:https'
import { json as readJson } from 'node:stream/consumers'
import type { Config } from '../config/load-config.ts'

export type Readiness = { status: 'ready' | 'degraded' | 'unavailable'; reasons: string[] }

/** The URL of the service with these settings, for requests from its own machine. */
export function toLocalUrl({ host, port, tlsCert }: Pick<Config, 'host' | 'port' | 'tlsCert'>): string {
  const address = ['0.0.0.0', '::'].includes(host) ? '127.0.0.1' : host
  return `${tlsCert === undefined ? 'http' : 'https'}://${address.includes(':') ? `[${address}]` : address}:${port}`
}

/** Requests `/readyz`; throws when the service does not answer. */
export async function askReadiness(url: string): Promise<Readiness> {
  const get = url.startsWith('https:') ? getSecure : getPlain
  // The certificate names the host that clients use, not this address.
  const options = { rejectUnauthorized: false, signal: AbortSignal.timeout(5000) }
  const answer = await new Promise<IncomingMessage>((resolve, reject) => {
    get(`${url}/readyz`, options, resolve).once('error', reject)
  })
  return (await readJson(answer)) as Readiness
}
