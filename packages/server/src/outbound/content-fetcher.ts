import type { IncomingHttpHeaders, IncomingMessage } from 'node:http'
import type { Content } from '../domain/content/content.ts'
import { isSameServer } from '../domain/downloads/target.ts'
import type {
  DownloadAuthorization,
  FeedFetcher,
  FetchFailure,
  FetchRequest,
  FetchResult,
  FetchValidators,
} from '../domain/ports/content-store.ts'
import { type AddressPolicy, checkWebAddress } from '../domain/scans/web-address.ts'
import { version } from '../runtime/process.ts'
import type { GuardedAgent, Peer } from './guarded-agent.ts'
import { newTimeLimit, OutboundError, type TimeLimit, toOutboundError, withinTime } from './outbound-error.ts'

const maxRedirects = 5
const redirects = new Set([301, 302, 303, 307, 308])
/** Statuses of success without the whole content. */
const withoutContent = new Set([204, 205, 206])

/** A request to a feed has the validators of its last download, and may find that nothing has changed. */
type AnyRequest = FetchRequest & { readonly validators?: FetchValidators }
type AnyResult = Awaited<ReturnType<FeedFetcher['fetchIfChanged']>>

/** Downloads content into the content store, from addresses that callers give. */
export function makeContentFetcher(deps: {
  agent: GuardedAgent
  policy: AddressPolicy
  /** Time from the connection to the head of the response; 15 s by default. */
  firstByteMs?: number
  /** Time between two chunks of the content; 15 s by default. */
  idleMs?: number
}): FeedFetcher {
  const { agent, policy, firstByteMs = 15_000, idleMs = 15_000 } = deps

  return {
    async fetchContent(url, request) {
      const result = await fetch(url, request)
      if ('isUnchanged' in result) throw new Error('A download without validators is never unchanged')
      return result
    },
    fetchIfChanged: fetch,
  }

  async function fetch(url: string, request: AnyRequest): Promise<AnyResult> {
    const sentence = `The download was not complete within ${request.totalMs / 1000} seconds.`
    try {
      return await withinTime({ ms: request.totalMs, signal: request.signal, sentence }, (signal) =>
        followRedirects(url, request, signal),
      )
    } catch (error) {
      request.signal.throwIfAborted()
      if (error instanceof OutboundError) return newFailure('DownloadFailed', error.message)
      throw error
    }
  }

  async function followRedirects(first: string, request: AnyRequest, signal: AbortSignal): Promise<AnyResult> {
    let address = first
    let { authorization } = request
    for (let followed = 0; followed <= maxRedirects; followed++) {
      const url = toUrl(address, request, followed > 0)
      // The server of a redirect chooses where it leads, so nothing is sent again after the first other server.
      if (followed > 0 && !staysValid(authorization, first, url)) authorization = undefined
      if (request.validators !== undefined && /^https:/i.test(first) && url.protocol !== 'https:') {
        throw new OutboundError('The address redirects from https to http.')
      }
      const time = newTimeLimit(signal)
      try {
        const onConnected = (peer: Peer) => {
          requirePrivacy(authorization, peer)
          time.set(firstByteMs, 'The host did not start to respond in time.')
        }
        const outgoing = { ...toRequest(url, request, authorization), onConnected }
        const result = await agent.exchange(outgoing, time.signal, (response) => {
          time.pause()
          requirePermission(response, request, authorization)
          return useResponse(response, url, request, time)
        })
        if (typeof result !== 'string') return withCredentialUse(result, request, authorization)
        address = result
      } finally {
        time.end()
      }
    }
    throw new OutboundError(`The address redirects more than ${maxRedirects} times.`)
  }

  /** Checks an address again at the time of the download: redirects are new, and jobs may be older than the policy. */
  function toUrl(address: string, request: FetchRequest, isRedirect: boolean): URL {
    const what = isRedirect ? 'The address of a redirect' : 'The address'
    const [error] = checkWebAddress(address, policy)
    if (error !== undefined) throw new OutboundError(`${what} ${error}`)
    const url = new URL(address)
    if (request.isHostAllowed?.(url.hostname.replace(/\.$/, '')) === false) {
      throw new OutboundError(`${what} names a host that this account may not use.`)
    }
    return url
  }

  /** Returns the result of the download, or the address of a redirect. */
  async function useResponse(
    response: IncomingMessage,
    url: URL,
    request: AnyRequest,
    time: TimeLimit,
  ): Promise<AnyResult | string> {
    const { statusCode = 0, headers } = response
    if (statusCode === 304 && hasValidators(request)) return { isUnchanged: true }
    if (redirects.has(statusCode)) return toTarget(response.headersDistinct.location, url)
    if (statusCode < 200 || statusCode > 299 || withoutContent.has(statusCode)) {
      throw new OutboundError(`The host answered with status ${statusCode}.`)
    }
    if (!/^(?:chunked)?$/i.test(String(headers['transfer-encoding'] ?? ''))) {
      throw new OutboundError('The host sent its response in a transfer encoding that is not supported.')
    }
    const encoding = headers['content-encoding'] ?? ''
    if (!/^(?:identity)?$/i.test(String(encoding))) {
      throw new OutboundError('The host sent encoded content, which the request does not accept.')
    }
    if (Number(headers['content-length'] ?? 0) > request.maxBytes) return newTooLarge(request)
    const result = await store(response, request, { time, idleMs })
    return 'content' in result ? { ...result, validators: readValidators(headers) } : result
  }
}

const staysValid = (authorization: DownloadAuthorization | undefined, first: string, url: URL): boolean =>
  authorization?.isForOneAddress === false && isSameServer(new URL(first), url)

function requirePrivacy(authorization: DownloadAuthorization | undefined, { isOpened }: Peer) {
  if (authorization?.needsOpenedNetwork !== true || isOpened) return
  throw new OutboundError(
    'The stored download credential was not sent: over http it goes only to networks that the operator has opened.',
  )
}

/** Adds to the content of an address with a credential whether the server that sent it got the credential. */
function withCredentialUse(result: AnyResult, request: AnyRequest, sent: DownloadAuthorization | undefined): AnyResult {
  if (!('content' in result) || request.authorization === undefined) return result
  return { ...result, credentialUse: sent === undefined ? 'not sent after a redirect' : 'sent' }
}

/** Explains a refusal to accounts with a credential for the address. The sentence has nothing of the credential. */
function requirePermission(
  { statusCode = 0 }: IncomingMessage,
  { authorization: stored }: AnyRequest,
  sent: DownloadAuthorization | undefined,
) {
  // Services of S3 answer 400 to a signature for another region.
  const isRefusal = statusCode === 401 || statusCode === 403 || (statusCode === 400 && sent?.isForOneAddress === true)
  if (stored === undefined || !isRefusal) return
  const reason =
    sent === undefined
      ? 'The stored download credential was not sent after the redirect'
      : 'The stored download credential was sent'
  throw new OutboundError(`The host answered with status ${statusCode}. ${reason}.`)
}

const toRequest = (url: URL, { validators }: AnyRequest, authorization: DownloadAuthorization | undefined) => ({
  url,
  method: 'GET' as const,
  requestTarget: authorization?.requestTarget,
  headers: {
    accept: '*/*',
    'accept-encoding': 'identity',
    'user-agent': `Assay/${version}`,
    ...(validators?.etag ? { 'if-none-match': validators.etag } : {}),
    ...(validators?.lastModified ? { 'if-modified-since': validators.lastModified } : {}),
    ...authorization?.headers,
  },
})

const hasValidators = ({ validators }: AnyRequest) => Boolean(validators?.etag ?? validators?.lastModified)

/** Values that are too long for a header that is sent back are not kept. */
const maxValidatorLength = 200

function readValidators({ etag, 'last-modified': lastModified }: IncomingHttpHeaders): FetchValidators {
  const toKept = (value: string | undefined) =>
    value !== undefined && /^[\x21-\x7e ]+$/.test(value) && value.length <= maxValidatorLength ? value : null
  return { etag: toKept(etag), lastModified: toKept(lastModified) }
}

type Timing = { time: TimeLimit; idleMs: number }

async function store(response: IncomingMessage, request: FetchRequest, timing: Timing): Promise<FetchResult> {
  const writer = request.contents.newWriter()
  let content: Content | undefined
  try {
    const bytes = await copy(response, request.maxBytes, timing, (chunk) => writer.write(chunk))
    if (bytes > request.maxBytes) return newTooLarge(request)
    if (bytes === 0) return newFailure('EmptyContent', 'The host sent no content.')
    content = await writer.finish()
    return { content }
  } finally {
    if (content === undefined) await writer.abort()
  }
}

/** Copies the body and returns its length. It stops at the first chunk that exceeds `maxBytes`. */
async function copy(
  response: IncomingMessage,
  maxBytes: number,
  { time, idleMs }: Timing,
  write: (chunk: Buffer) => Promise<void> | undefined,
): Promise<number> {
  const chunks: AsyncIterator<Buffer> = response[Symbol.asyncIterator]()
  let bytes = 0
  while (bytes <= maxBytes) {
    // The timer is paused while the content store writes, because that time is not the host's.
    time.set(idleMs, 'The host stopped sending.')
    const next = await chunks.next().catch((error) => {
      time.signal.throwIfAborted()
      throw toOutboundError(error)
    })
    time.pause()
    if (next.done) break
    bytes += next.value.length
    // Node does not use a chunk again after it is read, so the writer may keep its memory without a copy.
    if (bytes <= maxBytes) await write(next.value)
  }
  return bytes
}

function toTarget(locations: string[] = [], base: URL): string {
  const [location = ''] = locations
  const target = locations.length === 1 ? URL.parse(location, base.href) : null
  if (target === null) throw new OutboundError('The host redirects without a valid address.')
  return target.href
}

const newFailure = (failure: FetchFailure, reason: string) => ({ failure, reason })

const newTooLarge = ({ maxBytes }: FetchRequest) =>
  newFailure('TooLarge', `The content is larger than ${maxBytes} bytes.`)
