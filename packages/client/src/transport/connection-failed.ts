import { ConnectionFailed } from '../errors.ts'

/** Turns the error of a platform into a sentence about the connection. */
export function toConnectionFailed(url: string, cause: unknown): ConnectionFailed {
  const { host } = new URL(url)
  // fetch puts the reason into the cause of its error.
  const inner = cause instanceof Error && cause.cause instanceof Error ? cause.cause : cause
  const code = typeof inner === 'object' && inner !== null && 'code' in inner ? String(inner.code) : ''
  const reason = reasons[code] ?? (/CERT|SSL|TLS/.test(code) ? 'the certificate is not valid' : 'no connection')
  return new ConnectionFailed(
    `Cannot reach ${host}: ${reason}. Check that baseUrl is correct and that the service is running.`,
    { cause },
  )
}

const broken = 'the connection broke'
const unreachable = 'the network has no route to the host'

const reasons: Record<string, string> = {
  ECONNREFUSED: 'the connection was refused',
  ENOTFOUND: 'the host name does not exist',
  EAI_AGAIN: 'the host name could not be resolved',
  ECONNRESET: broken,
  EPIPE: broken,
  UND_ERR_SOCKET: broken,
  ETIMEDOUT: 'the connection timed out',
  EHOSTUNREACH: unreachable,
  ENETUNREACH: unreachable,
}
