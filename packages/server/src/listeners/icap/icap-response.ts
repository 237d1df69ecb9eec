import type { Content } from '../../domain/content/content.ts'
import { type Encapsulated, type IcapFault, lastChunk, toChunk } from '../../domain/icap/icap-message.ts'
import type { Connection } from '../connection.ts'
import {
  type Failure,
  mostBytes,
  type NotClean,
  newFailure,
  timeoutFailure,
  toIcapAnswer,
  toInfectionHeaders,
} from '../listener-scan.ts'
import type { IcapRequest } from './icap-request.ts'
import type { Decision } from './message-scan.ts'

const reasonPhrases = {
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

type IcapStatus = keyof typeof reasonPhrases
export type IcapHeaders = Record<string, string | undefined>

/**
 * The head of an ICAP response. Headers that are undefined are left out. Encapsulated comes last, because Nextcloud
 * reads no header after it.
 */
export function toIcapHead(status: IcapStatus, headers: IcapHeaders, encapsulated: string | undefined): string {
  const all = { ...headers, Encapsulated: encapsulated }
  const lines = Object.entries(all).flatMap(([name, value]) => (value === undefined ? [] : [`${name}: ${value}`]))
  return [`ICAP/1.0 ${status} ${reasonPhrases[status]}`, ...lines, '', ''].join('\r\n')
}

const nullBody = 'null-body=0'

/** A whole response to a client that is too slow. */
export const timeoutResponse = toIcapHead(408, { Connection: 'close', ...toInfectionHeaders(timeoutFailure) }, nullBody)

/** A whole response to a client that is not served, or whose connection must end. */
export const toFailureResponse = (failure: Failure): string =>
  toIcapHead(503, { Connection: 'close', ...toInfectionHeaders(failure) }, nullBody)

/** A whole response to a request that cannot be understood. Some clients look at no status, only at the headers. */
export const toRejection = ({ status, message }: IcapFault, tag: string): string =>
  toIcapHead(
    status,
    {
      ISTag: tag,
      Connection: 'close',
      Allow: status === 405 ? 'OPTIONS, REQMOD, RESPMOD' : undefined,
      'X-Assay-Detail': message,
      ...toInfectionHeaders(newFailure('InvalidRequest', message)),
    },
    nullBody,
  )

export type ResponderDeps = {
  /** Returns the ISTag, which changes whenever a verdict could. */
  findTag(): string
  /** Name and version of the server, such as `Assay 0.1.0`. */
  server: string
}

/** Sends the parts of a response to one request. */
export function makeResponder(
  connection: Connection,
  { head: request, headers }: { head: IcapRequest; headers: Encapsulated },
  deps: ResponderDeps,
) {
  const isRequest = request.method === 'REQMOD'
  const ownHeader = isRequest ? 'req-hdr' : 'res-hdr'
  const hasBody = request.layout.body !== 'null-body'
  let hasBegun = false

  const toHead = (status: IcapStatus, more: IcapHeaders, encapsulated = nullBody) =>
    Buffer.from(toIcapHead(status, { ISTag: deps.findTag(), Server: deps.server, ...more }, encapsulated))

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
    const head = toHead(200, request.closes ? { Connection: 'close' } : {}, layout)
    // Until the end of this response, any text for a failure would be a part of it.
    connection.setFailureReply(() => undefined)
    hasBegun = true
    await connection.send(own === undefined ? head : Buffer.concat([head, own]))
  }

  return {
    sendOptions: (options: IcapHeaders) => connection.send(toHead(200, options)),
    sendMessageHead,
    /** True once a part of the message was sent back: no other response can follow. */
    hasBegun: () => hasBegun,
    sendPart,
    sendContent,
    sendEnd,

    /**
     * Sends the whole response for a decision. `content` is the body to send back when the client cannot take 204. A
     * response for content that is not clean leaves in one write, because some clients read once. Returns whether the
     * connection stays open: c-icap-client waits for the end of the connection after an error without a body.
     */
    async sendDecision(
      { verdict, reference }: Decision,
      content: Content | undefined,
      options: { canSend204: boolean; closes: boolean; reportsErrors: boolean },
    ): Promise<boolean> {
      const last = { Connection: options.closes ? 'close' : undefined }
      if (verdict.is === 'clean') {
        if (options.canSend204) await connection.send(toHead(204, last))
        else {
          await sendMessageHead()
          if (content !== undefined) await sendContent(content)
          if (hasBody) await sendEnd()
        }
        return !options.closes
      }
      const { status, headers: cause } = toIcapAnswer(verdict, options.reportsErrors)
      if (status !== 200) {
        await connection.send(toHead(status, { Connection: 'close', ...cause }))
        return false
      }
      const page = toBlockPage(verdict, reference)
      const head = toHead(200, { ...last, ...cause }, `res-hdr=0, res-body=${page.head.length}`)
      await connection.send(Buffer.concat([head, page.head, ...toChunk(page.body), lastChunk]))
      return !options.closes
    },
  }
}

export type Responder = ReturnType<typeof makeResponder>

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

const pageStyle =
  'body{font:16px/1.5 system-ui,sans-serif;max-width:36rem;margin:15vh auto;padding:0 1rem;color:#222}' +
  'h1{font-size:1.4rem}dt{color:#666}dd{margin:0 0 .8rem;font-family:ui-monospace,monospace;overflow-wrap:anywhere}'

/**
 * The HTTP response that replaces a blocked message. Names come from signatures and are escaped. The status is 403 for
 * content that was not scanned, too, because some clients recognize no other.
 */
export function toBlockPage(verdict: NotClean, reference: string): { head: Buffer; body: Buffer } {
  const { title, text, label } = blockTexts[verdict.is === 'threat' ? 'threat' : 'unscanned']
  const name = verdict.names.join(', ')
  const body = Buffer.from(
    [
      '<!doctype html><html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">',
      `<title>${title}</title><style>${pageStyle}</style></head><body><h1>${title}</h1><p>${text}</p>`,
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

const entities: Record<string, string> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;', "'": '&#39;' }
const escapeHtml = (text: string) => text.replaceAll(/[&<>"']/g, (letter) => entities[letter] ?? '')

/** For each part of this size that was received, one byte is sent back. */
const partBytes = 32 * 1024
/** The most bytes of a file. Their content may be a threat that is found later; a file without its end is of no use. */
const maxOfDownload = Math.ceil(mostBytes / partBytes)
/** The most bytes of other content, which browsers render as it arrives: too few for a script. */
const maxOfOthers = 15

/**
 * Sends the beginning of a message back while its end is still awaited, a byte for every 32 KB. Squid 5 stops reading
 * from the origin server for ever when it has to wait for a response, and goes on after each byte of one.
 */
export function makeTrickle(
  responder: Pick<Responder, 'sendMessageHead' | 'sendPart' | 'sendEnd'>,
  { isDownload, preview }: { isDownload: boolean; preview: number | undefined },
) {
  /** The client reads nothing but 100 or a whole response before the end of its preview. */
  let isInPreview = preview !== undefined
  const maxSent = isDownload ? maxOfDownload : maxOfOthers
  let beginning = Buffer.alloc(0)
  let received = 0
  let sent = 0

  async function sendRest(content: Content) {
    let skipped = 0
    for await (const part of content.read()) {
      const known = Math.min(part.length, sent - skipped)
      skipped += known
      if (known < part.length) await responder.sendPart(part.subarray(known))
    }
  }

  return {
    /** True once a part of the message has left: it can then be completed or broken off, and not be replaced. */
    hasBegun: () => sent > 0,
    endPreview() {
      isInPreview = false
    },
    async receive(chunk: Buffer) {
      if (beginning.length < maxSent)
        beginning = Buffer.concat([beginning, chunk.subarray(0, maxSent - beginning.length)])
      received += chunk.length
      const due = Math.min(Math.floor(received / partBytes), maxSent)
      if (due === sent || isInPreview) return
      if (sent === 0) await responder.sendMessageHead()
      await responder.sendPart(beginning.subarray(sent, due))
      sent = due
    },
    sendRest,
    async complete(content: Content) {
      await sendRest(content)
      await responder.sendEnd()
    },
  }
}
