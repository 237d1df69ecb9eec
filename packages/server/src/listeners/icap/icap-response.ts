import type { Content } from '../../domain/content/content.ts'
import type { Connection } from '../connection.ts'
import type { Encapsulated, IcapRequest } from './icap-request.ts'
import type { Decision } from './message-scan.ts'

const reasons = {
  100: 'Continue',
  200: 'OK',
  204: 'No Content',
  400: 'Bad Request',
  404: 'Service Not Found',
  405: 'Method Not Allowed',
  408: 'Request Timeout',
  500: 'Server Error',
  503: 'Service Overloaded',
  505: 'ICAP Version Not Supported',
} as const

type IcapStatus = keyof typeof reasons
export type IcapHeaders = Record<string, string | undefined>

/** The head of an ICAP response. Headers that are undefined are left out. */
export function toIcapHead(status: IcapStatus, headers: IcapHeaders): string {
  const lines = Object.entries(headers).flatMap(([name, value]) => (value === undefined ? [] : [`${name}: ${value}`]))
  return [`ICAP/1.0 ${status} ${reasons[status]}`, ...lines, '', ''].join('\r\n')
}

const nullBody = { Encapsulated: 'null-body=0' }

/** A whole response without a request, for a client that is too slow or one connection too many. */
export const toClosingResponse = (status: IcapStatus): string =>
  toIcapHead(status, { ...nullBody, Connection: 'close' })

const toChunk = (bytes: Buffer): Buffer[] => [
  Buffer.from(`${bytes.length.toString(16)}\r\n`),
  bytes,
  Buffer.from('\r\n'),
]

const lastChunk = '0\r\n\r\n'

export type ResponderDeps = {
  /** Returns the ISTag, which changes whenever a verdict could. */
  findTag(): string
  /** Name and version of the server, such as `Assay 0.1.0`. */
  server: string
}

/** Sends the parts of a response to one request. */
export function makeResponder(
  connection: Connection,
  { request, headers }: { request: IcapRequest; headers: Encapsulated },
  deps: ResponderDeps,
) {
  const isRequest = request.method === 'REQMOD'
  const ownHeader = isRequest ? 'req-hdr' : 'res-hdr'
  const hasBody = request.layout.body !== 'null-body'

  const sendHead = (status: IcapStatus, more: IcapHeaders) =>
    connection.send(toIcapHead(status, { ISTag: deps.findTag(), Server: deps.server, ...more }))

  const sendPart = async (bytes: Buffer) => {
    for (const piece of toChunk(bytes)) await connection.send(piece)
  }

  const sendContent = async (content: Content) => {
    for await (const part of content.read()) await sendPart(part)
  }

  const sendEnd = () => connection.send(lastChunk)

  /** Starts sending the message back unchanged. A body must follow if the message has one. */
  async function sendMessageHead() {
    const own = headers[ownHeader]
    const body = hasBody ? (isRequest ? 'req-body' : 'res-body') : 'null-body'
    const layout = own === undefined ? `${body}=0` : `${ownHeader}=0, ${body}=${own.length}`
    await sendHead(200, { ...(request.closes ? { Connection: 'close' } : {}), Encapsulated: layout })
    if (own !== undefined) await connection.send(own)
  }

  return {
    sendOptions: (options: IcapHeaders) => sendHead(200, { ...options, ...nullBody }),
    sendMessageHead,
    sendPart,
    sendContent,
    sendEnd,

    /** Sends the whole response for a decision. `content` is the body to send back when the client cannot take 204. */
    async sendDecision(
      decision: Decision,
      content: Content | undefined,
      options: { canSend204: boolean; closes: boolean },
    ) {
      const last = options.closes ? { Connection: 'close' } : {}
      if (decision.is === 'failed') {
        const { sentence, retryAfterSeconds } = decision
        const retry = retryAfterSeconds === undefined ? undefined : String(retryAfterSeconds)
        const status = retryAfterSeconds === undefined ? 500 : 503
        await sendHead(status, { ...last, ...nullBody, 'Retry-After': retry, 'X-Assay-Detail': sentence })
      } else if (decision.is !== 'pass') {
        const page = toBlockPage(decision)
        const layout = `res-hdr=0, res-body=${page.head.length}`
        await sendHead(200, { ...last, ...toBlockHeaders(decision), Encapsulated: layout })
        await connection.send(Buffer.concat([page.head, ...toChunk(page.body), Buffer.from(lastChunk)]))
      } else if (options.canSend204) await sendHead(204, { ...last, ...nullBody })
      else {
        await sendMessageHead()
        if (content !== undefined) await sendContent(content)
        if (hasBody) await sendEnd()
      }
    },
  }
}

export type Block = Extract<Decision, { is: 'threat' | 'unscanned' }>

const blockTexts = {
  threat: {
    title: 'Blocked: threat found',
    text: 'This content is blocked, because a threat was found in it.',
    label: 'Threat',
  },
  unscanned: {
    title: 'Blocked: this content could not be scanned',
    text: 'This content is blocked, because it could not be scanned completely, so it may be unsafe.',
    label: 'Reason',
  },
}

const style =
  'body{font:16px/1.5 system-ui,sans-serif;max-width:36rem;margin:15vh auto;padding:0 1rem;color:#222}' +
  'h1{font-size:1.4rem}dt{color:#666}dd{margin:0 0 .8rem;font-family:ui-monospace,monospace;overflow-wrap:anywhere}'

/**
 * The HTTP response that replaces a blocked message. Names come from signatures and are escaped. The status is 403 for
 * content that was not scanned, too, because some clients recognize no other.
 */
export function toBlockPage({ is, name, reference }: Block): { head: Buffer; body: Buffer } {
  const { title, text, label } = blockTexts[is]
  const body = Buffer.from(
    [
      '<!doctype html><html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">',
      `<title>${title}</title><style>${style}</style></head><body><h1>${title}</h1><p>${text}</p>`,
      `<dl><dt>${label}</dt><dd>${escapeHtml(name)}</dd>`,
      `<dt>Reference</dt><dd>${escapeHtml(reference)}</dd></dl></body></html>\n`,
    ].join(''),
  )
  const lines = [
    'HTTP/1.1 403 Forbidden',
    'Content-Type: text/html; charset=utf-8',
    `Content-Length: ${body.length}`,
    'Cache-Control: no-store',
    "Content-Security-Policy: default-src 'none'; style-src 'unsafe-inline'",
    'X-Content-Type-Options: nosniff',
  ]
  return { head: Buffer.from(`${lines.join('\r\n')}\r\n\r\n`), body }
}

/** The headers of c-icap and other servers, for clients that look at nothing else. */
export const toBlockHeaders = ({ is, name }: Block) =>
  is === 'threat'
    ? { 'X-Infection-Found': `Type=0; Resolution=2; Threat=${toToken(name)};`, 'X-Virus-ID': toToken(name) }
    : {}

const toToken = (name: string) => name.replaceAll(/[^\x21-\x7e]|[;,"]/g, '_')

const entities: Record<string, string> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;', "'": '&#39;' }
const escapeHtml = (text: string) => text.replaceAll(/[&<>"']/g, (letter) => entities[letter] ?? '')
