import { ConnectionFailed } from '../errors.ts'

/** What a platform says of a connection, as a sentence. */
export function toConnectionFailed(url: string, cause: unknown): ConnectionFailed {
  const { host } = new URL(url)
  // fetch hides the reason one level deeper.
  const inner = cause instanceof Error && cause.cause instanceof Error ? cause.cause : cause
  const code = typeof inner === 'object' && inner !== null && 'code' in inner ? String(inner.code) : ''
  const reason = reasons[code] ?? (/CERT|SSL|TLS/.test(code) ? certificate : 'There was no connection to')
  return new ConnectionFailed(`${reason} ${host}. Check that baseUrl is right and that the service can be reached.`, {
    cause,
  })
}

const certificate = 'The certificate is not valid of'

const reasons: Record<string, string> = {
  ECONNREFUSED: 'Nothing listens at',
  ENOTFOUND: 'There is no host by the name of',
  EAI_AGAIN: 'The address could not be looked up of',
  ECONNRESET: 'The connection broke to',
  EPIPE: 'The connection broke to',
  UND_ERR_SOCKET: 'The connection broke to',
  ETIMEDOUT: 'No connection could be made to',
  EHOSTUNREACH: 'There is no way to',
  ENETUNREACH: 'There is no way to',
  DEPTH_ZERO_SELF_SIGNED_CERT: certificate,
}
