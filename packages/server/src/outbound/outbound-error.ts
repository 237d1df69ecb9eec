/** A stranger's fault, or a refusal of ours to call one. The message is a sentence for people, without addresses. */
export class OutboundError extends Error {
  override name = 'OutboundError'
}

/** We ran out of something: trying again may help, and nobody's download has failed. */
const ownShortages = new Set(['EMFILE', 'ENFILE', 'ENOMEM', 'ENOBUFS'])

/** What a call outside went wrong with, as an OutboundError where it was not our fault, otherwise as it is. */
export function toOutboundError(error: unknown): unknown {
  if (error instanceof OutboundError || !(error instanceof Error)) return error
  // Its codes are those of the parser, or none.
  if (error.name === 'HTTPParserError')
    return new OutboundError('The host did not answer in valid HTTP.', { cause: error })
  const code = 'code' in error && typeof error.code === 'string' ? error.code : undefined
  if (code === undefined || ownShortages.has(code)) return error
  return new OutboundError(toSentence(code), { cause: error })
}

function toSentence(code: string): string {
  if (code in sentences) return sentences[code] as string
  if (code.startsWith('ERR_SSL_') || code === 'EPROTO') return 'The host did not agree to a secure connection.'
  if (/CERT|ISSUER|SIGNATURE|CRL|CHAIN/.test(code)) return 'The certificate of the host could not be verified.'
  return 'The connection to the host failed.'
}

const closedEarly = 'The host closed the connection before its answer was complete.'
const unreachable = 'The host cannot be reached.'

const sentences: Record<string, string> = {
  ECONNREFUSED: 'The host refused the connection.',
  ECONNRESET: closedEarly,
  EPIPE: closedEarly,
  UND_ERR_SOCKET: closedEarly,
  ENETUNREACH: unreachable,
  EHOSTUNREACH: unreachable,
  // Both without IPv6 on this machine.
  EADDRNOTAVAIL: unreachable,
  EAFNOSUPPORT: unreachable,
  ETIMEDOUT: 'The host did not complete a connection in time.',
  UND_ERR_RES_CONTENT_LENGTH_MISMATCH: 'The host did not send what it had announced.',
  UND_ERR_HEADERS_OVERFLOW: 'The headers of the answer are too large.',
  ERR_TLS_CERT_ALTNAME_INVALID: 'The certificate of the host is for another name.',
}
