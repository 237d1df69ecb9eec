import { BlockList, isIP } from 'node:net'
import { parsePostgresUrl } from '../runtime/postgres-url.ts'

/** Converts the text of a setting to its value, or throws an Error whose message completes "ASSAY_NAME must ...". */
export type Reader<T> = (text: string) => T

export const text: Reader<string> = (value) => {
  if (value.trim() === '') throw new Error('must not be empty')
  return value
}

export const port: Reader<number> = (value) => {
  const number = Number(value)
  if (!/^\d{1,5}$/.test(value) || number > 65535) throw new Error('must be a port number from 0 to 65535')
  return number
}

export const wholeNumber =
  (min: number, max: number): Reader<number> =>
  (value) => {
    const number = Number(value)
    if (!/^\d{1,15}$/.test(value) || number < min || number > max) {
      throw new Error(`must be a whole number from ${min} to ${max}`)
    }
    return number
  }

export const oneOf =
  <const T extends string>(...choices: T[]): Reader<T> =>
  (value) => {
    const found = choices.find((choice) => choice === value)
    if (found === undefined) throw new Error(`must be one of ${choices.join(', ')}`)
    return found
  }

export type Roles = { api: boolean; worker: boolean }

export const roles: Reader<Roles> = (value) => {
  const names = value.split(',').map((name) => name.trim())
  if (names.some((name) => name !== 'api' && name !== 'worker')) {
    throw new Error('must be api, worker or both, separated by a comma')
  }
  return { api: names.includes('api'), worker: names.includes('worker') }
}

export const postgresUrl: Reader<string> = (value) => {
  parsePostgresUrl(value)
  return value
}

export const httpOrigin: Reader<string> = (value) => {
  const url = URL.parse(value)
  if (url === null || !/^https?:$/.test(url.protocol) || url.origin !== value.replace(/\/$/, '')) {
    throw new Error('must be an origin such as https://scan.example.com, without a path')
  }
  return url.origin
}

export const listOf =
  <T>(item: Reader<T>): Reader<T[]> =>
  (value) =>
    value
      .split(',')
      .map((part) => part.trim())
      .filter((part) => part !== '')
      .map((part) => item(part))

/** A network such as 10.0.0.0/8, or a single address. */
export const network: Reader<string> = (value) => {
  const [address = '', bits, ...rest] = value.split('/')
  const version = isIP(address)
  const widest = version === 6 ? 128 : 32
  const prefix = bits === undefined ? widest : /^\d{1,3}$/.test(bits) ? Number(bits) : Number.NaN
  if (version === 0 || rest.length > 0 || !(prefix >= 0 && prefix <= widest)) {
    throw new Error('must be networks such as 10.0.0.0/8 or fd00::/8, separated by commas')
  }
  // BlockList matches addresses later, so it must accept the network.
  new BlockList().addSubnet(address, prefix, version === 6 ? 'ipv6' : 'ipv4')
  return `${address}/${prefix}`
}

/** The address of a clamd: the path of a socket, or a host and a port. */
export const clamdAddress: Reader<{ path: string } | { host: string; port: number }> = (value) => {
  if (value.startsWith('/')) return { path: value }
  const [, v6, name, port] = /^(?:\[([0-9a-f:.]+)\]|([\w.-]+)):(\d{1,5})$/i.exec(value) ?? []
  const host = v6 ?? name
  if (host === undefined || Number(port) === 0 || Number(port) > 65535) {
    throw new Error(
      'must be the path of a socket such as /run/clamav/clamd.ctl, or a host and port such as clamav:3310',
    )
  }
  return { host, port: Number(port) }
}

export const key256: Reader<Buffer> = (value) => {
  if (!/^[0-9a-f]{64}$/i.test(value)) throw new Error('must be 64 hex digits, such as `openssl rand -hex 32` prints')
  return Buffer.from(value, 'hex')
}

export const httpUrl: Reader<string> = (value) => {
  const url = URL.parse(value)
  // URL.parse accepts spaces and line breaks, which would start another setting in the configuration of freshclam.
  if (url === null || !/^https?:$/.test(url.protocol) || /\s/.test(value))
    throw new Error('must be URLs that begin with http:// or https://')
  return value
}

/** A key or token: it is sent in a header and compared byte by byte, so invisible characters are refused. */
export const credential: Reader<string> = (value) => {
  if (!/^[\x21-\x7e]{8,255}$/.test(value)) throw new Error('must be 8 to 255 visible ASCII characters without spaces')
  return value
}

/** The token of scripts that act as an operator: too long to be guessed. */
export const operatorToken: Reader<string> = (value) => {
  if (!/^[\x21-\x7e]{32,255}$/.test(value)) {
    throw new Error('must be 32 to 255 visible ASCII characters without spaces, such as `openssl rand -hex 32` prints')
  }
  return value
}

export const regionName: Reader<string> = (value) => {
  if (!/^[a-z0-9][a-z0-9-]{0,31}$/.test(value)) throw new Error('must be a short name such as eu or us-east-1')
  return value
}

export const modelName: Reader<string> = (value) => {
  if (!/^[a-z0-9][a-z0-9.-]{0,63}$/.test(value)) throw new Error('must be the name of a model, such as inception-v3')
  return value
}

export const proxyUrl: Reader<URL> = (value) => {
  const url = URL.parse(value)
  if (url === null || url.protocol !== 'http:' || url.pathname !== '/' || url.search !== '' || url.hash !== '') {
    throw new Error('must be a URL such as http://proxy.example.com:3128')
  }
  return url
}

export const smtpUrl: Reader<URL> = (value) => {
  const url = URL.parse(value)
  if (url === null || !['smtp:', 'smtps:'].includes(url.protocol) || url.hostname === '') {
    throw new Error('must be a URL like smtp://user:password@mail.example.com:587 or smtps://mail.example.com')
  }
  try {
    decodeURIComponent(`${url.username}:${url.password}`)
  } catch {
    throw new Error('must have a user and a password that are encoded for URLs: write % as %25')
  }
  return url
}

const unitMs: Record<string, number> = { s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 }

/** A duration, in milliseconds. */
export const duration: Reader<number> = (value) => {
  const [, number, unit = ''] = /^(\d{1,6})([smhd])$/.exec(value) ?? []
  const ms = Number(number) * (unitMs[unit] ?? Number.NaN)
  if (!(ms > 0)) throw new Error('must be durations such as 5s, 30m, 2h or 1d')
  return ms
}

/** The greatest age of something that can also be left unchecked. */
export const maxAge: Reader<number | 'off'> = (value) => {
  if (value === 'off') return value
  try {
    return duration(value)
  } catch {
    throw new Error('must be a duration such as 12h or 7d, or off')
  }
}

type S3Place = {
  at: 's3'
  bucket: string
  /** Empty, or a path that ends with a slash. */
  prefix: string
  /** Undefined: the AWS endpoint of the region. */
  endpoint: string | undefined
  region: string
  /** Whether the bucket is in the path of a URL, or in its host name. */
  pathStyle: boolean
  /** Encryption by the store; undefined: as the bucket is set up. */
  encryption: { algorithm: (typeof encryptions)[number]; kmsKey: string | undefined } | undefined
  /** PEM file with the certificates that the endpoint is trusted by. */
  caFile: string | undefined
}

export type BlobsPlace = { at: 'disk' } | S3Place

const example = 's3://bucket/prefix?endpoint=https://s3.example.com:9000&region=eu-west-1'
const parameters = ['endpoint', 'region', 'path_style', 'sse', 'sse_kms_key', 'ca']
const encryptions = ['AES256', 'aws:kms', 'aws:kms:dsse'] as const

/** The store for the content of background jobs. */
export const blobsPlace: Reader<BlobsPlace> = (value) => {
  if (value === 'disk') return { at: 'disk' }
  const [, bucket, path = '', query = ''] = /^s3:\/\/([^/?#]*)(\/[^?#]*)?(?:\?([^#]*))?$/.exec(value) ?? []
  if (bucket === undefined) throw new Error(`must be disk, or a URL such as ${example}`)
  const values = readParameters(query)
  const endpoint = values.get('endpoint')
  return {
    at: 's3',
    bucket: toBucket(bucket),
    prefix: toPrefix(path),
    endpoint: endpoint === undefined ? undefined : toEndpoint(endpoint),
    region: toRegion(values.get('region')),
    // S3 stores other than AWS seldom resolve a host name for each bucket.
    pathStyle: toPathStyle(values.get('path_style')) ?? endpoint !== undefined,
    encryption: toEncryption(values.get('sse'), values.get('sse_kms_key')),
    caFile: toCaFile(values.get('ca'), endpoint),
  }
}

function readParameters(query: string): Map<string, string> {
  const values = new Map<string, string>()
  for (const [name, value] of new URLSearchParams(query)) {
    if (!parameters.includes(name)) throw new Error(`must have no parameters other than ${parameters.join(', ')}`)
    if (values.has(name)) throw new Error(`must have the parameter ${name} only once`)
    values.set(name, value)
  }
  return values
}

function toBucket(bucket: string): string {
  if (bucket.includes('@')) {
    throw new Error('must contain no credentials: set ASSAY_S3_ACCESS_KEY and ASSAY_S3_SECRET_KEY')
  }
  if (!/^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$/.test(bucket)) {
    throw new Error('must name a bucket of 3 to 63 lower-case letters, digits, dots and hyphens after s3://')
  }
  return bucket
}

function toPrefix(path: string): string {
  const prefix = path.replace(/^\//, '').replace(/\/$/, '')
  if (prefix === '') return ''
  const isPlain = prefix.split('/').every((name) => /^[\w.-]+$/.test(name) && !/^\.+$/.test(name))
  if (!isPlain || prefix.length > 512) {
    throw new Error('must have a prefix of letters, digits, dots, hyphens and underscores, separated by single slashes')
  }
  return `${prefix}/`
}

function toEndpoint(endpoint: string): string {
  try {
    return httpOrigin(endpoint)
  } catch {
    throw new Error('must have an endpoint such as https://s3.example.com:9000, without a path')
  }
}

function toRegion(region: string | undefined): string {
  if (region === undefined || !/^[a-z0-9][a-z0-9-]{0,62}$/i.test(region)) {
    throw new Error('must name a region, such as region=eu-west-1 (us-east-1 for a store without regions)')
  }
  return region
}

function toPathStyle(value: string | undefined): boolean | undefined {
  if (value === undefined || value === 'true' || value === 'false')
    return value === undefined ? value : value === 'true'
  throw new Error('must have path_style=true or path_style=false')
}

function toEncryption(name: string | undefined, kmsKey: string | undefined): S3Place['encryption'] {
  const algorithm = encryptions.find((one) => one === name)
  if (name !== undefined && algorithm === undefined) throw new Error(`must have sse=${encryptions.join(' or sse=')}`)
  if (kmsKey !== undefined && (algorithm === undefined || algorithm === 'AES256')) {
    throw new Error('must have sse=aws:kms or sse=aws:kms:dsse beside sse_kms_key')
  }
  return algorithm && { algorithm, kmsKey }
}

function toCaFile(file: string | undefined, endpoint: string | undefined): string | undefined {
  if (file === undefined) return undefined
  if (!endpoint?.startsWith('https:')) throw new Error('must have an endpoint with https:// beside ca')
  if (!file.startsWith('/')) throw new Error('must have the absolute path of a PEM file as ca')
  return file
}
