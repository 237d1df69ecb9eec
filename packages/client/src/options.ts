import type { ClientOptions } from './client.ts'

/** A mistake in them is one of the program, and is told at once: TypeError. */
export function readOptions(options: ClientOptions) {
  const { apiKey, timeoutMs, retries = 3 } = options
  if (typeof apiKey !== 'string' || !/^[\x21-\x7e]+$/.test(apiKey)) {
    throw new TypeError('apiKey must be the API key as it was shown: letters, digits and signs, without blanks.')
  }
  if (timeoutMs !== undefined && !(timeoutMs > 0)) throw new TypeError('timeoutMs must be a number above 0.')
  if (!Number.isInteger(retries) || retries < 0) throw new TypeError('retries must be a whole number, 0 or more.')
  return { apiKey, baseUrl: readBaseUrl(options), timeoutMs, retries }
}

const mark = '{region}'

function readBaseUrl({ baseUrl, region }: ClientOptions): string {
  if (typeof baseUrl !== 'string') throw new TypeError('baseUrl must be the address of Assay, as https://host.')
  if (baseUrl.includes(mark) && region === undefined) throw new TypeError(`baseUrl has ${mark}: give region as well.`)
  if (!baseUrl.includes(mark) && region !== undefined) throw new TypeError(`region needs a baseUrl with ${mark} in it.`)
  if (region !== undefined && !/^[a-z0-9-]+$/i.test(region)) {
    throw new TypeError('region must be letters, digits and hyphens: eu, uk, us, ap.')
  }
  const url = findUrl(baseUrl.replaceAll(mark, region ?? ''))
  if (url === undefined || !['http:', 'https:'].includes(url.protocol) || url.search !== '' || url.hash !== '') {
    throw new TypeError(`baseUrl must be the address of Assay, as https://host, not ${baseUrl}`)
  }
  if (url.username !== '' || url.password !== '') throw new TypeError('baseUrl must not have a user name or password.')
  return url.origin + url.pathname.replace(/\/+$/, '').replace(/\/v1$/, '')
}

function findUrl(text: string): URL | undefined {
  try {
    return new URL(text)
  } catch {
    return undefined
  }
}
