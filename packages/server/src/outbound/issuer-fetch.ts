import type { IncomingMessage } from 'node:http'
import { isIP } from 'node:net'
import type { AddressPolicy } from '../domain/scans/web-address.ts'
import { version } from '../runtime/process.ts'
import { type GuardedAgent, makeGuardedAgent } from './guarded-agent.ts'
import { OutboundError } from './outbound-error.ts'
import { makeResolveName } from './resolve-name.ts'
import { withinTime } from './time-limit.ts'

const requestMs = 10_000
/** Metadata, keys and tokens are far smaller. */
const maxBytes = 1024 * 1024

type Init = { method?: string; headers?: Record<string, string>; body?: unknown }

/**
 * A fetch for the issuer of single sign-on. The operator chose its host, which is often internal, so that any address is
 * allowed for it. Other hosts, which only its metadata names, must pass the policy of outbound requests. Addresses that
 * the policy allows are called through the proxy, others directly. Redirects are not followed.
 */
export function makeIssuerFetch(deps: { issuer: URL; policy: AddressPolicy; agent: GuardedAgent }) {
  const { issuer, policy, agent } = deps
  const resolve = makeResolveName()
  const direct = makeGuardedAgent({ policy: { ...policy, isAllowed: () => true } })

  return async (address: string, { method = 'GET', headers = {}, body }: Init = {}): Promise<Response> => {
    const url = new URL(address)
    const sentence = `${url.host} did not answer within ${requestMs / 1000} seconds.`
    const limit = { ms: requestMs, signal: new AbortController().signal, sentence }
    return await withinTime(limit, async (signal) => {
      const request = {
        url,
        method: method === 'POST' ? ('POST' as const) : ('GET' as const),
        headers: { 'user-agent': `Assay/${version}`, ...headers },
        ...(body === undefined || body === null ? {} : { body: Buffer.from(String(body)) }),
      }
      return await ((await isInternal(url, signal)) ? direct : agent).exchange(request, signal, toResponse)
    })
  }

  async function isInternal(url: URL, signal: AbortSignal): Promise<boolean> {
    if (url.host !== issuer.host) return false
    const host = url.hostname.replace(/^\[|\]$/g, '')
    const addresses = isIP(host) === 0 ? await resolve(host, signal) : [host]
    return !addresses.every(policy.isAllowed)
  }
}

async function toResponse(response: IncomingMessage): Promise<Response> {
  const chunks: Buffer[] = []
  let bytes = 0
  for await (const chunk of response as AsyncIterable<Buffer>) {
    bytes += chunk.length
    if (bytes > maxBytes) throw new OutboundError('The response of the issuer is too large.')
    chunks.push(chunk)
  }
  const { statusCode: status = 500 } = response
  const type = response.headers['content-type']
  const hasBody = status !== 204 && status !== 304
  return new Response(hasBody ? Buffer.concat(chunks) : null, {
    status,
    headers: type === undefined ? {} : { 'content-type': type },
  })
}
