/** A failure of the other side, or an address that the policy forbids. The message is a sentence for users. */
export class OutboundError extends Error {
  override name = 'OutboundError'
}

/** The same for a name that does not exist and for one of this network: callers must not learn which names exist here. */
export const noPublicAddress = 'The name of the host does not lead to a public address.'

/** Errors of this machine, which lacks a resource. They are not failures of the other side, and a retry may help. */
const ownShortages = new Set(['EMFILE', 'ENFILE', 'ENOMEM', 'ENOBUFS'])

/** Turns an error that the other side caused into an OutboundError. Returns every other error unchanged. */
export function toOutboundError(error: unknown): unknown {
  if (error instanceof OutboundError || !(error instanceof Error)) return error
  const code = 'code' in error && typeof error.code === 'string' ? error.code : undefined
  if (code === undefined || ownShortages.has(code)) return error
  return new OutboundError(toSentence(code), { cause: error })
}

function toSentence(code: string): string {
  if (code in sentences) return sentences[code] as string
  if (code.startsWith('HPE_')) return 'The host did not send a valid HTTP response.'
  if (code.startsWith('ERR_SSL_') || code === 'EPROTO') return 'The TLS handshake with the host failed.'
  if (/CERT|ISSUER|SIGNATURE|CRL|CHAIN/.test(code)) return 'The certificate of the host could not be verified.'
  return 'The connection to the host failed.'
}

const closedEarly = 'The host closed the connection before its response was complete.'
const wrongLength = 'The length that the host announced is not valid.'
const unreachable = 'The host cannot be reached.'

const sentences: Record<string, string> = {
  ECONNREFUSED: 'The host refused the connection.',
  ECONNRESET: closedEarly,
  EPIPE: closedEarly,
  ENETUNREACH: unreachable,
  EHOSTUNREACH: unreachable,
  // These two occur on a machine without IPv6.
  EADDRNOTAVAIL: unreachable,
  EAFNOSUPPORT: unreachable,
  ETIMEDOUT: 'The host did not complete a connection in time.',
  HPE_INVALID_CONTENT_LENGTH: wrongLength,
  HPE_UNEXPECTED_CONTENT_LENGTH: wrongLength,
  HPE_HEADER_OVERFLOW: 'The headers of the response are too large.',
  ERR_TLS_CERT_ALTNAME_INVALID: 'The certificate of the host is for another name.',
}
