export type ClientOptions = {
  apiKey: string
  /** Address of the service, such as `https://scan.example.com`. `region` replaces `{region}` in it. */
  baseUrl: string
  /** Name of a region: `eu`, `uk`, `us`, `ap`, or another that the operator chose. */
  region?: string
  /** Timeout of a whole call including its retries. Default: 2 minutes, and 10 minutes for a file. */
  timeoutMs?: number
  /** Number of retries after a 429, 502, 503 or 504, or a failed connection. Default: 3. */
  retries?: number
  /** Sends all requests instead of the transport of the platform. */
  fetch?: typeof fetch
}

export type CallOptions = {
  signal?: AbortSignal
  timeoutMs?: number
}

export type SendOptions = CallOptions & {
  /** Name of the content. Default: the name of the input, if it has one. */
  fileName?: string
  /**
   * Requests with the same key, operation and content are scanned and charged once. Default: a random key for each call.
   * With null the request has no key: the service does less work, and the client does not retry after a broken
   * connection.
   */
  idempotencyKey?: string | null
}

export type SubmitOptions = SendOptions & {
  /** Address that receives the result by POST; see verifyWebhook. */
  callbackUrl?: string
}

/** Bytes of the content that were sent. `total` is undefined for streams. `sent` starts again with each retry. */
export type Progress = { sent: number; total: number | undefined }

export type ProgressOptions = { onProgress?(progress: Progress): void }

/** Validates the options of a client. An invalid option is a bug of the calling program, hence a TypeError. */
export function readOptions(options: ClientOptions) {
  const { apiKey, timeoutMs, retries = 3 } = options
  if (typeof apiKey !== 'string' || !/^[\x21-\x7e]+$/.test(apiKey)) {
    throw new TypeError('apiKey must be an API key: printable ASCII characters without spaces.')
  }
  if (timeoutMs !== undefined && !(timeoutMs > 0)) throw new TypeError('timeoutMs must be greater than 0.')
  if (!Number.isInteger(retries) || retries < 0) throw new TypeError('retries must be a whole number, 0 or more.')
  return { apiKey, baseUrl: readBaseUrl(options), timeoutMs, retries }
}

const placeholder = '{region}'

function readBaseUrl({ baseUrl, region }: ClientOptions): string {
  if (typeof baseUrl !== 'string') throw new TypeError('baseUrl must be the address of Assay, such as https://host.')
  const isRegional = baseUrl.includes(placeholder)
  if (isRegional && region === undefined) throw new TypeError(`baseUrl contains ${placeholder}: set region as well.`)
  if (!isRegional && region !== undefined)
    throw new TypeError(`region requires a baseUrl that contains ${placeholder}.`)
  if (region !== undefined && !/^[a-z0-9-]+$/i.test(region)) {
    throw new TypeError('region must consist of letters, digits and hyphens, such as eu, uk, us or ap.')
  }
  const url = findUrl(baseUrl.replaceAll(placeholder, region ?? ''))
  if (url === undefined || !['http:', 'https:'].includes(url.protocol) || url.search !== '' || url.hash !== '') {
    throw new TypeError(`baseUrl must be the address of Assay, such as https://host, not ${baseUrl}`)
  }
  if (url.username !== '' || url.password !== '') {
    throw new TypeError('baseUrl must not contain a user name or password.')
  }
  return url.origin + url.pathname.replace(/\/+$/, '').replace(/\/v1$/, '')
}

function findUrl(text: string): URL | undefined {
  try {
    return new URL(text)
  } catch {
    return undefined
  }
}
