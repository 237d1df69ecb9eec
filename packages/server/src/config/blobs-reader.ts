import { httpOrigin, type Reader } from './readers.ts'

type S3Place = {
  at: 's3'
  bucket: string
  /** Empty, or a path that ends with a slash. */
  prefix: string
  /** Undefined: Amazon's own for the region. */
  endpoint: string | undefined
  region: string
  /** Whether the bucket stands in the path of an address, or in its host name. */
  pathStyle: boolean
}

export type BlobsPlace = { at: 'disk' } | S3Place

const example = 's3://bucket/prefix?endpoint=https://s3.example.com:9000&region=eu-west-1'
const parameters = ['endpoint', 'region', 'path_style']

/** Where content of background jobs lies. */
export const blobsPlace: Reader<BlobsPlace> = (value) => {
  if (value === 'disk') return { at: 'disk' }
  const [, bucket, path = '', query = ''] = /^s3:\/\/([^/?#]*)(\/[^?#]*)?(?:\?([^#]*))?$/.exec(value) ?? []
  if (bucket === undefined) throw new Error(`must be disk, or an address such as ${example}`)
  const given = readParameters(query)
  const endpoint = given.get('endpoint')
  return {
    at: 's3',
    bucket: toBucket(bucket),
    prefix: toPrefix(path),
    endpoint: endpoint === undefined ? undefined : toEndpoint(endpoint),
    region: toRegion(given.get('region')),
    // Other stores seldom have a host name for each bucket.
    pathStyle: toPathStyle(given.get('path_style')) ?? endpoint !== undefined,
  }
}

function readParameters(query: string): Map<string, string> {
  const found = new Map<string, string>()
  for (const [name, value] of new URLSearchParams(query)) {
    if (!parameters.includes(name)) throw new Error(`must have no parameters but ${parameters.join(', ')}`)
    if (found.has(name)) throw new Error(`must have the parameter ${name} once`)
    found.set(name, value)
  }
  return found
}

function toBucket(bucket: string): string {
  if (bucket.includes('@')) {
    throw new Error('must carry no credentials (they belong in ASSAY_S3_ACCESS_KEY and ASSAY_S3_SECRET_KEY)')
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
    throw new Error('must have a prefix of letters, digits, dots, hyphens and underscores, parted by single slashes')
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
    throw new Error('must name a region, such as region=eu-west-1 (us-east-1 where the store has none)')
  }
  return region
}

function toPathStyle(value: string | undefined): boolean | undefined {
  if (value === undefined || value === 'true' || value === 'false')
    return value === undefined ? value : value === 'true'
  throw new Error('must have path_style=true or path_style=false')
}
