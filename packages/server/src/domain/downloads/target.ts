import { hash } from 'node:crypto'
import { isIP } from 'node:net'
import { isPossibleHost } from '../scans/web-address.ts'

type Protocol = 'https:' | 'http:'

/** A server by protocol, host and port. The host is in lower case, without a final dot, IPv6 in brackets. */
type Server = { protocol: Protocol; host: string; port: number }

/** The hosts that get the headers of a credential: one host, or all hosts below a domain, on one port. */
export type HostTarget = Server & { kind: 'headers'; isWildcard: boolean }

/** Where URLs of a service name the bucket: in the path, or as the first part of the host name. */
export type UrlStyle = 'path' | 'host'

/** The bucket whose URLs are signed. Without an endpoint it is a bucket of AWS, which knows both styles. */
export type BucketTarget = {
  kind: 's3'
  bucket: string
  region: string
  endpoint: (Server & { style: UrlStyle }) | null
}

export type DownloadTarget = HostTarget | BucketTarget

/**
 * Query parameters with which a URL still means the content of an object. Others ask for something else, such as `acl`,
 * or belong to a URL that is signed already.
 */
const objectParameters = /^(?:versionId|x-id|response-[a-z-]+)$/

/** Reads a host pattern such as `files.example.com` or `https://*.example.com:8443`, or returns why it is none. */
export function readHostTarget(text: string): HostTarget | string {
  const [, scheme = 'https', star = '', rest = ''] = /^(?:(https?):\/\/)?(\*\.)?([^*]*)$/i.exec(text.trim()) ?? []
  const server = readServer(`${scheme}://${rest}`)
  if (server === undefined) {
    return 'Enter a host such as files.example.com, *.example.com or https://files.example.com:8443, without a path.'
  }
  return { kind: 'headers', ...server, isWildcard: star !== '' }
}

/** Reads the bucket of an S3 credential, or returns why it is none. */
export function readBucketTarget(
  bucket: string,
  region: string,
  endpoint: string | null,
  style: UrlStyle = 'path',
): BucketTarget | string {
  if (!/^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$/.test(bucket) || bucket.includes('..') || isIP(bucket) !== 0) {
    return 'Enter the name of a bucket: 3 to 63 lower-case letters, digits, dots and hyphens.'
  }
  if (!/^[a-z0-9-]{1,40}$/.test(region)) return 'Enter a region such as eu-central-1.'
  if (endpoint === null) return { kind: 's3', bucket, region, endpoint }
  const server = readServer(/^https?:\/\//i.test(endpoint) ? endpoint : `https://${endpoint}`)
  if (server === undefined) return 'Enter an endpoint such as https://s3.example.com, without a path.'
  if (style === 'host' && isAddress(server.host)) return 'An IP address cannot have a bucket in front of it.'
  return { kind: 's3', bucket, region, endpoint: { ...server, style } }
}

/** Reads a target as `toTargetText` wrote it. */
export function readTarget(text: string, region: string | null): DownloadTarget | string {
  const [, bucket, endpoint, style] = /^s3:\/\/([^?]+)(?:\?endpoint=([^&]+)(&style=host)?)?$/.exec(text) ?? []
  if (bucket === undefined) return readHostTarget(text)
  return readBucketTarget(bucket, region ?? '', endpoint ?? null, style === undefined ? 'path' : 'host')
}

/** The one spelling of a target, by which an account has at most one credential for it. */
export function toTargetText(target: DownloadTarget): string {
  if (target.kind === 'headers') return toServerText(target, target.isWildcard ? '*.' : '')
  const { bucket, endpoint } = target
  if (endpoint === null) return `s3://${bucket}`
  return `s3://${bucket}?endpoint=${toServerText(endpoint)}${endpoint.style === 'host' ? '&style=host' : ''}`
}

/** Credentials for a plain http address can be read on the way, so only networks of the operator get them. */
export const isPlainHttp = (target: DownloadTarget): boolean =>
  (target.kind === 'headers' ? target : target.endpoint)?.protocol === 'http:'

/**
 * Finds the most specific of the targets that a URL belongs to. A URL of a bucket that may not be signed has none: the
 * headers of its host are not for it.
 */
export function findTarget<T extends { target: DownloadTarget }>(url: URL, candidates: T[]): T | undefined {
  const matching = candidates.filter(({ target }) =>
    target.kind === 'headers' ? isOfHost(url, target) : findObjectPath(url, target) !== undefined,
  )
  const [first] = matching.toSorted((a, b) => toRank(b.target) - toRank(a.target) || compareText(a.target, b.target))
  const maySign = [...url.searchParams.keys()].every((name) => objectParameters.test(name))
  return first?.target.kind === 's3' && !maySign ? undefined : first
}

/** Returns the decoded path of an object of the bucket, or undefined if the URL is not one of an object in it. */
export function findObjectPath(url: URL, { bucket, region, endpoint }: BucketTarget): string | undefined {
  const path = decodePath(url.pathname)
  if (path === undefined) return undefined
  const servers = endpoint === null ? toAwsServers(region) : [endpoint]
  const isInPath = path.startsWith(`/${bucket}/`) && path.length > bucket.length + 2
  for (const server of servers) {
    if (endpoint?.style !== 'host' && isInPath && isOfServer(url, server)) return path
    // A service that does not take its host name for that of a bucket would read another bucket from the path.
    const isInHost = endpoint?.style !== 'path' && isOfServer(url, { ...server, host: `${bucket}.${server.host}` })
    if (isInHost && path.length > 1) return path
  }
  return undefined
}

/** Whether a host of a target is an IP address. */
export const isAddress = (host: string): boolean => host.startsWith('[') || isIP(host) !== 0

/** The host of a URL in one spelling: names with and without a final dot are the same host. */
const toHost = (url: URL): string => url.hostname.replace(/\.$/, '')

const toPort = (url: URL): number => Number(url.port || (url.protocol === 'https:' ? 443 : 80))

/** Whether two addresses are of the same server: protocol, host and port. */
export const isSameServer = (a: URL, b: URL): boolean =>
  a.protocol === b.protocol && toHost(a) === toHost(b) && toPort(a) === toPort(b)

function readServer(text: string): Server | undefined {
  // The parser of URLs drops tabs and newlines and replaces backslashes, so the text is checked before.
  if (text.length > 300 || !/^https?:\/\/[^\s/?#@\\\u0000-\u0020\u007f]+\/?$/iu.test(text)) return undefined
  const url = URL.parse(text)
  if (url === null || !isPossibleHost(url.hostname) || url.hostname.includes('*') || url.port === '0') {
    return undefined
  }
  return { protocol: url.protocol as Protocol, host: toHost(url), port: toPort(url) }
}

function toServerText({ protocol, host, port }: Server, star = ''): string {
  const isDefault = port === (protocol === 'https:' ? 443 : 80)
  return `${protocol}//${star}${host}${isDefault ? '' : `:${port}`}`
}

const isOfServer = (url: URL, { protocol, host, port }: Server): boolean =>
  url.protocol === protocol && toHost(url) === host && toPort(url) === port

const isOfHost = (url: URL, { isWildcard, ...server }: HostTarget): boolean =>
  isWildcard
    ? toHost(url).endsWith(`.${server.host}`) && isOfServer(url, { ...server, host: toHost(url) })
    : isOfServer(url, server)

/** A bucket is part of a host, a host part of a domain, and a longer domain part of a shorter one. */
function toRank(target: DownloadTarget): number {
  if (target.kind === 's3') return 2000 + (target.endpoint?.host.length ?? 0)
  return target.isWildcard ? target.host.length : 1000
}

const compareText = (a: DownloadTarget, b: DownloadTarget) => (toTargetText(a) < toTargetText(b) ? -1 : 1)

function toAwsServers(region: string): Server[] {
  const domain = region.startsWith('cn-') ? 'amazonaws.com.cn' : 'amazonaws.com'
  return [`s3.${region}.${domain}`, `s3.dualstack.${region}.${domain}`, `s3.${domain}`].map((host) => ({
    protocol: 'https:',
    host,
    port: 443,
  }))
}

/** Decodes a path. A path with dot segments, which servers read differently, or invalid encoding has no meaning here. */
function decodePath(path: string): string | undefined {
  try {
    const decoded = decodeURIComponent(path)
    return decoded.split('/').some((segment) => segment === '.' || segment === '..') ? undefined : decoded
  } catch {
    return undefined
  }
}

export type Header = { name: string; value: string }

/** The secret part of a credential. It is sealed in the database, and never shown again. */
export type CredentialValues =
  | { kind: 'headers'; headers: Header[] }
  | { kind: 's3'; accessKeyId: string; secretAccessKey: string }

/** A name that people see in place of a value, and by which they can tell which value is stored. */
export type ShownValue = { name: string; fingerprint: string }

export const maxCredentials = 50
const maxHeaders = 20
const maxNameLength = 100
/** Servers commonly refuse heads of more than 8 KB, and the request has some headers of its own. */
const maxHeaderBytes = 7000
const maxKeyLength = 200

/**
 * Headers that frame the message, belong to the connection or to proxies, ask for a part of the content or for another
 * method, or that Assay needs to set itself.
 */
const forbiddenNames = new Set(
  `accept-encoding connection date expect host http2-settings keep-alive max-forwards origin proxy-connection range te
   trailer transfer-encoding upgrade via x-http-method x-http-method-override x-method-override`.split(/\s+/),
)
const forbiddenStarts = ['content-', 'if-', 'proxy-', 'sec-', 'access-control-']

/** Returns the errors of headers that somebody wants to store. The sentences name headers and never their values. */
export function checkHeaders(headers: Header[]): string[] {
  if (headers.length === 0) return ['Enter at least one header.']
  if (headers.length > maxHeaders) return [`Enter at most ${maxHeaders} headers.`]
  const names = headers.map(({ name }) => name.toLowerCase())
  const errors = headers.flatMap(({ name, value }, i) => {
    // A whole line in place of the name would put its value into the sentence.
    const shown = /^[\w.-]{1,40}$/.test(name) ? name : `number ${i + 1}`
    const error = findHeaderError(name.toLowerCase(), value)
    if (error === undefined && names.indexOf(name.toLowerCase()) === i) return []
    return [`The header ${shown} ${error ?? 'appears twice'}.`]
  })
  const bytes = headers.reduce((sum, { name, value }) => sum + name.length + value.length + 4, 0)
  return bytes > maxHeaderBytes ? [...errors, `Enter at most ${maxHeaderBytes} bytes of headers.`] : errors
}

function findHeaderError(name: string, value: string): string | undefined {
  if (name.length > maxNameLength || !/^[!#$%&'*+.^_`|~0-9a-z-]+$/.test(name)) return 'does not have a valid name'
  if (forbiddenNames.has(name) || forbiddenStarts.some((start) => name.startsWith(start))) {
    return 'cannot be stored, because Assay or the connection sets it'
  }
  if (value === '' || value !== value.trim()) return 'has an empty value, or blanks around it'
  return /^[\x20-\x7e]*$/.test(value) ? undefined : 'has a value with control characters or letters outside of ASCII'
}

/** Returns the errors of an access key. */
export function checkAccessKey({ accessKeyId, secretAccessKey }: { accessKeyId: string; secretAccessKey: string }) {
  const errors: string[] = []
  // A slash or comma would end the identifier within the header that carries it.
  if (accessKeyId.length > maxKeyLength || !/^[\x21-\x7e]+$/.test(accessKeyId) || /[/,]/.test(accessKeyId)) {
    errors.push('The access key ID is not valid.')
  }
  if (accessKeyId.startsWith('ASIA')) {
    errors.push('The access key is a temporary one, which needs a session token and ends soon. Enter a permanent key.')
  }
  if (secretAccessKey.length > maxKeyLength || !/^[\x21-\x7e]+$/.test(secretAccessKey)) {
    errors.push('The secret access key is not valid.')
  }
  return errors
}

/** Shows people of the values their names, and the first 32 bits of the SHA-256 of each value. */
export function showValues(values: CredentialValues): ShownValue[] {
  const all =
    values.kind === 'headers'
      ? values.headers
      : [
          { name: 'access key ID', value: values.accessKeyId },
          { name: 'secret access key', value: values.secretAccessKey },
        ]
  return all.map(({ name, value }) => ({ name, fingerprint: hash('sha256', value, 'hex').slice(0, 8) }))
}
