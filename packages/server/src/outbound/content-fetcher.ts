import type { Client, Dispatcher } from 'undici'
import type { Content } from '../domain/content/content.ts'
import type { ContentFetcher, FetchFailure, FetchRequest, FetchResult } from '../domain/ports/content-store.ts'
import { type AddressPolicy, checkWebAddress } from '../domain/scans/web-address.ts'
import { version } from '../runtime/version.ts'
import type { GuardedAgent } from './guarded-agent.ts'
import { OutboundError, toOutboundError } from './outbound-error.ts'
import { newTimeLimit, type TimeLimit, withinTime } from './time-limit.ts'

type Answer = Dispatcher.ResponseData

const maxRedirects = 5
const redirects = new Set([301, 302, 303, 307, 308])
/** Successes that are not the content. */
const withoutContent = new Set([204, 205, 206])
/** Early hints and the like. Nobody has reason for more. */
const maxInformational = 20

/** Downloads straight into the content store, from whoever answers at an address that a stranger gave. */
export function makeContentFetcher(deps: {
  agent: GuardedAgent
  policy: AddressPolicy
  /** From the connection to the head of the answer; 15 s unless told. */
  firstByteMs?: number
  /** Between two pieces of the content; 15 s unless told. */
  idleMs?: number
}): ContentFetcher {
  const { agent, policy, firstByteMs = 15_000, idleMs = 15_000 } = deps

  return {
    async fetchContent(url, request) {
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
    },
  }

  async function followRedirects(first: string, request: FetchRequest, signal: AbortSignal): Promise<FetchResult> {
    let address = first
    for (let followed = 0; followed <= maxRedirects; followed++) {
      const url = toUrl(address, request, followed > 0)
      const time = newTimeLimit(signal)
      try {
        const result = await agent.withClient(url.origin, time.signal, (client) => exchange(client, url, request, time))
        if (typeof result !== 'string') return result
        address = result
      } finally {
        time.end()
      }
    }
    throw new OutboundError(`The address leads through more than ${maxRedirects} redirects.`)
  }

  /** What is checked when a scan is asked for is checked here again: for redirects, and for jobs from before a restart. */
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

  /** The outcome, or the address that it redirects to. */
  async function exchange(client: Client, url: URL, request: FetchRequest, time: TimeLimit) {
    const answer = await ask(client, url, time)
    const { statusCode, headers } = answer
    if (redirects.has(statusCode)) return toTarget(headers.location, url)
    if (statusCode < 200 || statusCode > 299 || withoutContent.has(statusCode)) {
      throw new OutboundError(`The host answered with status ${statusCode}.`)
    }
    const encoding = headers['content-encoding'] ?? ''
    if (!/^(?:identity)?$/i.test(String(encoding))) {
      throw new OutboundError('The host sent its content encoded, which was not asked for.')
    }
    if (Number(headers['content-length'] ?? 0) > request.maxBytes) return newTooLarge(request)
    return await store(answer, request, time)
  }

  async function ask(client: Client, url: URL, time: TimeLimit): Promise<Answer> {
    let informational = 0
    client.once('connect', () => time.set(firstByteMs, 'The host did not begin to answer in time.'))
    const answer = await getAnswer(client, {
      method: 'GET',
      path: `${url.pathname}${url.search}`,
      headers: { accept: '*/*', 'accept-encoding': 'identity', 'user-agent': `Assay/${version}` },
      onInfo() {
        informational += 1
        if (informational > maxInformational) throw new OutboundError('The host did not come to its answer.')
      },
    })
    time.pause()
    // It fails once more when the client ends; whoever reads it has been told.
    answer.body.on('error', () => {})
    return answer
  }

  async function store(answer: Answer, request: FetchRequest, time: TimeLimit): Promise<FetchResult> {
    const writer = request.contents.newWriter()
    let content: Content | undefined
    try {
      const bytes = await copy(answer, request, time, (chunk) => writer.write(chunk))
      if (bytes > request.maxBytes) return newTooLarge(request)
      if (bytes === 0) return newFailure('EmptyContent', 'The host sent no content.')
      content = await writer.finish()
      return { content }
    } finally {
      if (content === undefined) await writer.abort()
    }
  }

  /** How many bytes there were; it stops at the first piece that is too much. */
  async function copy(
    answer: Answer,
    { maxBytes }: FetchRequest,
    time: TimeLimit,
    write: (chunk: Buffer) => Promise<void> | undefined,
  ): Promise<number> {
    const chunks: AsyncIterator<Buffer> = answer.body[Symbol.asyncIterator]()
    let bytes = 0
    while (bytes <= maxBytes) {
      // The time stands still while the content store writes: that is not the host's.
      time.set(idleMs, 'The host stopped sending.')
      const next = await chunks.next().catch((error) => {
        time.signal.throwIfAborted()
        throw toOutboundError(error)
      })
      time.pause()
      if (next.done) break
      bytes += next.value.length
      // undici hands on what the socket read and looks at none of it again, so the writer may have it without a copy.
      if (bytes <= maxBytes) await write(next.value)
    }
    return bytes
  }
}

/** Errors of the content store must not be taken for the host's, so these are told apart where they come from. */
const getAnswer = (client: Client, options: Dispatcher.RequestOptions) =>
  client.request(options).catch((error) => {
    throw toOutboundError(error)
  })

function toTarget(location: string | string[] | undefined, base: URL): string {
  const target = typeof location === 'string' ? URL.parse(location, base.href) : null
  if (target === null) throw new OutboundError('The host redirects without a valid address.')
  return target.href
}

const newFailure = (failure: FetchFailure, reason: string): FetchResult => ({ failure, reason })

const newTooLarge = ({ maxBytes }: FetchRequest) =>
  newFailure('TooLarge', `The content is larger than ${maxBytes} bytes.`)
