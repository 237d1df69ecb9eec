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

export type TimeLimit = {
  /** Aborts with the parent or when the time is over. Its reason is the error to throw. */
  readonly signal: AbortSignal
  /** Starts a new time limit, which replaces the previous one. */
  set(ms: number, sentence: string): void
  pause(): void
  /** Stops the timer and removes the listener from the parent. Must be called. */
  end(): void
}

/** A time limit that can be restarted and removed, as each chunk of a download needs; AbortSignal.timeout cannot. */
export function newTimeLimit(parent: AbortSignal): TimeLimit {
  const controller = new AbortController()
  let timer: NodeJS.Timeout | undefined
  const follow = () => controller.abort(parent.reason)
  if (parent.aborted) follow()
  else parent.addEventListener('abort', follow, { once: true })
  return {
    signal: controller.signal,
    set(ms, sentence) {
      clearTimeout(timer)
      timer = setTimeout(() => controller.abort(new OutboundError(sentence)), ms)
    },
    pause: () => clearTimeout(timer),
    end() {
      clearTimeout(timer)
      parent.removeEventListener('abort', follow)
    },
  }
}

/** Runs `work` within a time limit. When the time is over or the parent aborts, it throws that reason. */
export async function withinTime<T>(
  limit: { ms: number; signal: AbortSignal; sentence: string },
  work: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const time = newTimeLimit(limit.signal)
  time.set(limit.ms, limit.sentence)
  try {
    time.signal.throwIfAborted()
    return await work(time.signal)
  } catch (error) {
    time.signal.throwIfAborted()
    throw error
  } finally {
    time.end()
  }
}
