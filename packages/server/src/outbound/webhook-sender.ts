import type { Client } from 'undici'
import type { WebhookRequest, WebhookResponse, WebhookSender } from '../domain/ports/webhook-sender.ts'
import { type AddressPolicy, checkWebAddress } from '../domain/scans/web-address.ts'
import { version } from '../runtime/version.ts'
import type { GuardedAgent } from './guarded-agent.ts'
import { OutboundError, toOutboundError } from './outbound-error.ts'
import { withinTime } from './time-limit.ts'

/** Some receivers take a connection that ends early for a failure of theirs, so short answers are read to their end. */
const maxAnswerBytes = 64 * 1024
const keptBytes = 1024

/** Early hints and the like. Nobody has reason for more. */
const maxInformational = 20

/** Posts to receivers that strangers named, on a connection of its own each time, so every time they are judged anew. */
export function makeWebhookSender(deps: { agent: GuardedAgent; policy: AddressPolicy }): WebhookSender {
  const { agent, policy } = deps

  return {
    async send(request) {
      const sentence = `The receiver did not answer within ${request.totalMs / 1000} seconds.`
      try {
        const url = toUrl(request.url)
        const limit = { ms: request.totalMs, signal: new AbortController().signal, sentence }
        return await withinTime(limit, (signal) =>
          agent.withClient(url.origin, signal, (client) => exchange(client, url, request)),
        )
      } catch (error) {
        const known = toOutboundError(error)
        if (known instanceof OutboundError) return { status: null, reason: known.message }
        return { status: null, reason: 'The request could not be sent, by a fault of this service.', fault: error }
      }
    },

    toHeaders,
  }

  /** Checked when the scan was asked for; what is allowed may have changed since. */
  function toUrl(address: string): URL {
    const [error] = checkWebAddress(address, policy)
    if (error !== undefined) throw new OutboundError(`The address ${error}`)
    return new URL(address)
  }
}

const toHeaders = (headers: Record<string, string>) => ({
  'content-type': 'application/json',
  'user-agent': `Assay/${version}`,
  ...headers,
})

async function exchange(client: Client, url: URL, request: WebhookRequest): Promise<WebhookResponse> {
  let informational = 0
  const { statusCode, headers, body } = await client.request({
    method: 'POST',
    path: `${url.pathname}${url.search}`,
    headers: toHeaders(request.headers),
    body: request.body,
    onInfo() {
      informational += 1
      if (informational > maxInformational) throw new OutboundError('The receiver did not come to its answer.')
    },
  })
  // It fails once more when the client ends; whoever reads it has been told.
  body.on('error', () => {})
  const retryAfter = headers['retry-after']
  return {
    status: statusCode,
    retryAfter: typeof retryAfter === 'string' ? retryAfter : undefined,
    beginning: await readBeginning(body),
  }
}

/** What could be read of it before it broke off or the time was over: the status has come already. */
async function readBeginning(body: AsyncIterable<Buffer>): Promise<Buffer> {
  const kept: Buffer[] = []
  let bytes = 0
  try {
    for await (const chunk of body) {
      if (bytes < keptBytes) kept.push(chunk.subarray(0, keptBytes - bytes))
      bytes += chunk.length
      if (bytes >= maxAnswerBytes) break
    }
  } catch {}
  return Buffer.concat(kept)
}
