import { WebhookRejected } from './errors.ts'
import { isScanResult, type ScanResult } from './results.ts'

/** As fetch has them, or as Node has them. Names are matched without regard to case. */
export type WebhookHeaders = { get(name: string): string | null } | Record<string, string | string[] | undefined>

export type VerifyOptions = {
  /** How far the time of the webhook may be from now. Default: 300. */
  toleranceSeconds?: number
  /** `standard`: only the signature that covers the time. Default: `any`. */
  accept?: 'any' | 'standard'
  /** Default: now. */
  at?: Date
}

export type Subtle = typeof globalThis.crypto.subtle

/** `secret`: one, or several of which one must fit, as while it is being changed. */
export type VerifyWebhook = (
  body: Uint8Array | ArrayBuffer,
  headers: WebhookHeaders,
  secret: string | readonly string[],
  options?: VerifyOptions,
) => Promise<ScanResult>

/**
 * Where there is the signature of Standard Webhooks, it alone decides: it covers the time, and after a change of the
 * secret it still fits the one before.
 */
export function makeVerifyWebhook(getSubtle: () => Subtle): VerifyWebhook {
  /** Of WebCrypto, because it compares in constant time. */
  async function isSigned(key: Bytes, signature: Bytes, message: Bytes): Promise<boolean> {
    const subtle = getSubtle()
    const algorithm = { name: 'HMAC', hash: 'SHA-256' }
    const imported = await subtle.importKey('raw', key, algorithm, false, ['verify'])
    return await subtle.verify('HMAC', imported, signature, message)
  }

  async function isAnySigned(keys: Bytes[], signatures: Bytes[], message: Bytes): Promise<boolean> {
    for (const key of keys) {
      for (const signature of signatures) if (await isSigned(key, signature, message)) return true
    }
    return false
  }

  return async (body, headers, secret, { toleranceSeconds = 300, accept = 'any', at = new Date() } = {}) => {
    const bytes = toBytes(body)
    const secrets = requireSecrets(secret)
    const standard = findHeader(headers, 'webhook-signature')
    const hex = findHeader(headers, 'x-api-signature')
    if (standard !== undefined) {
      const id = findHeader(headers, 'webhook-id') ?? ''
      const timestamp = findHeader(headers, 'webhook-timestamp') ?? ''
      const message = concat(encode(`${id}.${timestamp}.`), bytes)
      if (!(await isAnySigned(secrets.map(toStandardKey), readStandard(standard), message))) throw wrong()
      requireFresh(timestamp, at, toleranceSeconds)
    } else if (hex !== undefined && accept === 'any') {
      if (!(await isAnySigned(secrets.map(encode), readHex(hex), bytes))) throw wrong()
    } else {
      throw new WebhookRejected('The request has no signature that is accepted. It is not from Assay.', 'unsigned')
    }
    return requireResult(bytes)
  }
}

type Bytes = Uint8Array<ArrayBuffer>

/** More than Assay ever sends; each one costs an HMAC. */
const maxSignatures = 8

/** `v1,<base64>`, several with blanks between them. Other versions are passed over. */
const readStandard = (header: string): Bytes[] =>
  header
    .split(' ')
    .filter((one) => one.startsWith('v1,'))
    .slice(0, maxSignatures)
    .flatMap((one) => fromBase64(one.slice(3)) ?? [])

const readHex = (header: string): Bytes[] =>
  /^[0-9a-f]{64}$/i.test(header)
    ? [Uint8Array.from(header.match(/../g) ?? [], (pair) => Number.parseInt(pair, 16))]
    : []

/** What stands after `whsec_`, decoded. A secret of any other form is used as text. */
function toStandardKey(secret: string): Bytes {
  const encoded = /^whsec_([A-Za-z0-9+/]+={0,2})$/.exec(secret)?.[1]
  return (encoded === undefined ? undefined : fromBase64(encoded)) ?? encode(secret)
}

function fromBase64(text: string): Bytes | undefined {
  try {
    return Uint8Array.from(atob(text), (char) => char.charCodeAt(0))
  } catch {
    return undefined
  }
}

function requireFresh(timestamp: string, at: Date, toleranceSeconds: number): void {
  const ageSeconds = Math.abs(at.getTime() / 1000 - Number(timestamp))
  if (/^\d+$/.test(timestamp) && ageSeconds <= toleranceSeconds) return
  throw new WebhookRejected(
    `The webhook is ${Math.round(ageSeconds)} s away from now, more than ${toleranceSeconds} s. Check the clock here.`,
    'too-old',
  )
}

function requireResult(bytes: Bytes): ScanResult {
  try {
    const value: unknown = JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(bytes))
    if (isScanResult(value)) return value
  } catch {
    // Told below.
  }
  throw new WebhookRejected('The webhook is signed, but its body is no scan result.', 'unreadable')
}

function requireSecrets(secret: string | readonly string[]): string[] {
  const secrets = typeof secret === 'string' ? [secret] : [...(secret ?? [])]
  const areGood = secrets.length > 0 && secrets.every((one) => typeof one === 'string' && one !== '')
  if (!areGood) throw new TypeError('The webhook secret is missing. It was shown when the account was created.')
  return secrets
}

const wrong = () =>
  new WebhookRejected(
    'The signature does not fit. Check that the secret is right, and that the body is given as the bytes that came.',
    'wrong-signature',
  )

function findHeader(headers: WebhookHeaders, name: string): string | undefined {
  if (typeof headers.get === 'function') return headers.get(name) ?? undefined
  const found = Object.entries(headers).find(([key]) => key.toLowerCase() === name)?.[1]
  return Array.isArray(found) ? found.join(' ') : (found as string | undefined)
}

const encode = (text: string): Bytes => new TextEncoder().encode(text) as Bytes

/** A body that was parsed cannot be verified any more. */
function toBytes(body: Uint8Array | ArrayBuffer): Bytes {
  if (body instanceof ArrayBuffer) return new Uint8Array(body)
  if (body instanceof Uint8Array) return body as Bytes
  throw new TypeError('Give the body of the webhook as the bytes that came, before anything parses it.')
}

function concat(head: Bytes, tail: Bytes): Bytes {
  const all = new Uint8Array(head.length + tail.length)
  all.set(head)
  all.set(tail, head.length)
  return all
}
