import { createHash, createHmac, type Hash, type Hmac } from 'node:crypto'
import { SignatureV4 } from '@smithy/signature-v4'
import type { SignedObject } from '../domain/downloads/credentials.ts'

/** SHA-256, or with a key its HMAC, in the form in which the signer of AWS uses it. */
class Sha256 {
  readonly #hash: Hash | Hmac
  constructor(key?: string | ArrayBufferView | ArrayBuffer) {
    const bytes = key instanceof ArrayBuffer ? Buffer.from(key) : key
    this.#hash =
      bytes === undefined ? createHash('sha256') : createHmac('sha256', bytes as string | NodeJS.ArrayBufferView)
  }
  update(bytes: Uint8Array) {
    this.#hash.update(bytes)
  }
  digest = async () => this.#hash.digest()
  reset() {
    throw new Error('A hash is used once')
  }
}

/**
 * Signs the download of one object (AWS Signature Version 4). Servers compare the signature with the path and query in
 * an encoding of their own, so the request is sent in that encoding too.
 */
export async function signObject({ url, path, region, accessKeyId, secretAccessKey, at }: SignedObject) {
  const credentials = { accessKeyId, secretAccessKey }
  const signer = new SignatureV4({ service: 's3', region, credentials, sha256: Sha256, uriEscapePath: false })
  const names = [...new Set(url.searchParams.keys())]
  const query = Object.fromEntries(names.map((name) => [name, url.searchParams.getAll(name)]))
  const pairs = [...url.searchParams].map(([name, value]) => `${encode(name)}=${encode(value)}`)
  const encodedPath = path.split('/').map(encode).join('/')
  const signed = await signer.sign(
    {
      method: 'GET',
      protocol: url.protocol,
      hostname: url.hostname,
      path: encodedPath,
      query,
      headers: { host: url.host },
    },
    { signingDate: at },
  )
  const { host: _, ...headers } = signed.headers
  return { requestTarget: pairs.length === 0 ? encodedPath : `${encodedPath}?${pairs.join('&')}`, headers }
}

/** Encodes everything but letters, digits and `-._~`. */
const encode = (text: string): string =>
  encodeURIComponent(text).replace(/[!'()*]/g, (char) => `%${char.charCodeAt(0).toString(16).toUpperCase()}`)
