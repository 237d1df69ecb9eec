import type { IncomingMessage } from 'node:http'
import type { MailSender } from '../domain/ports/alert-store.ts'
import type { WebhookRequest, WebhookResponse, WebhookSender } from '../domain/ports/delivery-store.ts'
import { type AddressPolicy, checkWebAddress } from '../domain/scans/web-address.ts'
import type { Logger } from '../runtime/logger.ts'
import { version } from '../runtime/process.ts'
import type { GuardedAgent, Peer } from './guarded-agent.ts'
import { OutboundError, toOutboundError, withinTime } from './outbound-error.ts'

/** Responses up to 64 KB are read to the end, because some receivers treat an early close as a failure. */
const maxResponseBytes = 64 * 1024
const maxLoggedBytes = 1024

/** Posts webhooks. Each attempt opens a new connection, so the address of the receiver is checked every time. */
export function makeWebhookSender(deps: { agent: GuardedAgent; policy: AddressPolicy }): WebhookSender {
  const { agent, policy } = deps

  return {
    async send(request) {
      const sentence = `The receiver did not answer within ${request.totalMs / 1000} seconds.`
      try {
        const url = toUrl(request.url)
        const limit = { ms: request.totalMs, signal: new AbortController().signal, sentence }
        return await withinTime(limit, (signal) => agent.exchange(toRequest(url, request), signal, toWebhookResponse))
      } catch (error) {
        const outboundError = toOutboundError(error)
        if (outboundError instanceof OutboundError) return { status: null, reason: outboundError.message }
        return { status: null, reason: 'The request could not be sent because of an internal error.', fault: error }
      }
    },

    toHeaders,
  }

  /** Checks the address again, because the policy may have changed since the scan was submitted. */
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

const toRequest = (url: URL, request: WebhookRequest) => ({
  url,
  method: 'POST' as const,
  headers: toHeaders(request.headers),
  body: request.body,
})

async function toWebhookResponse(response: IncomingMessage, { isPublic }: Peer): Promise<WebhookResponse> {
  const { statusCode: status = 0, headers } = response
  return { status, retryAfter: headers['retry-after'], beginning: await readBeginning(response), isPublic }
}

/** Reads the start of the body. A failure here does not matter, because the status has already arrived. */
async function readBeginning(body: AsyncIterable<Buffer>): Promise<Buffer> {
  const chunks: Buffer[] = []
  let bytes = 0
  try {
    for await (const chunk of body) {
      if (bytes < maxLoggedBytes) chunks.push(chunk.subarray(0, maxLoggedBytes - bytes))
      bytes += chunk.length
      if (bytes >= maxResponseBytes) break
    }
  } catch {}
  return Buffer.concat(chunks)
}

const mailTimeoutMs = 10_000
const localHosts = new Set(['localhost', '127.0.0.1', '[::1]'])

/**
 * Makes the client of the operator's mail server. A password is sent to a server on this machine, or over TLS only.
 */
export function makeMailSender({ url, from, log }: { url: URL; from: string; log: Logger }): MailSender {
  const options = {
    host: url.hostname.replace(/^\[(.*)\]$/, '$1'),
    port: url.port === '' ? (url.protocol === 'smtps:' ? 465 : 587) : Number(url.port),
    secure: url.protocol === 'smtps:',
    requireTLS: url.username !== '' && !localHosts.has(url.hostname),
    connectionTimeout: mailTimeoutMs,
    greetingTimeout: mailTimeoutMs,
    socketTimeout: mailTimeoutMs,
    disableFileAccess: true,
    disableUrlAccess: true,
    ...(url.username === ''
      ? {}
      : { auth: { user: decodeURIComponent(url.username), pass: decodeURIComponent(url.password) } }),
  }
  return {
    async send(mail) {
      // Imported with the first mail, because most installations send none.
      const { createTransport } = await import('nodemailer')
      const transport = createTransport(options)
      try {
        await transport.sendMail({ from, ...mail })
        return undefined
      } catch (error) {
        // The message has the address and the words of the operator's mail server, which owners do not get to see.
        const { message, code, responseCode } = error as Error & { code?: string; responseCode?: number }
        log.warn({ reason: message.slice(0, 500), code, responseCode }, 'the mail server did not take a mail')
        const codes = [code, responseCode].filter((one) => one !== undefined)
        return `The mail server did not take the mail${codes.length > 0 ? ` (${codes.join(', ')})` : ''}.`
      } finally {
        transport.close()
      }
    },
  }
}
