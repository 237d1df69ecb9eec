import { WebhookRejected } from './errors.ts'
import { isScanResult, type ScanResult } from './results.ts'

/** Headers as fetch or as Node represents them. Names match in any case. */
export type WebhookHeaders = { get(name: string): string | null } | Record<string, string | string[] | undefined>

export type VerifyOptions = {
  /** Largest difference between the timestamp of the webhook and the current time. Default: 300. */
  toleranceSeconds?: number
  /** `standard` accepts only `webhook-signature`, which covers the timestamp. Default: `any`. */
  accept?: 'any' | 'standard'
  /** Time to compare the timestamp with. Default: now. */
  at?: Date
}

export type Subtle = typeof globalThis.crypto.subtle

/** `secret` is one secret, or several of which one must match, as during a rotation. */
export type VerifyWebhook = (
  body: Uint8Array | ArrayBuffer,
  headers: WebhookHeaders,
  secret: string | readonly string[],
  options?: VerifyOptions,
) => Promise<ScanResult>

/**
 * Verifies `webhook-signature` (Standard Webhooks) if the request has it, because it covers the timestamp and also
 * matches the previous secret after a rotation. Otherwise verifies `X-Api-Signature`.
 */
export function makeVerifyWebhook(getSubtle: () => Subtle): VerifyWebhook {
  /** Uses WebCrypto, which compares in constant time. */
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
      if (!(await isAnySigned(secrets.map(toStandardKey), readStandard(standard), message))) throw newWrongSignature()
      requireFresh(timestamp, at, toleranceSeconds)
    } else if (hex !== undefined && accept === 'any') {
      if (!(await isAnySigned(secrets.map(encode), readHex(hex), bytes))) throw newWrongSignature()
    } else {
      throw new WebhookRejected('The request has no acceptable signature. It is not from Assay.', 'unsigned')
    }
    return requireResult(bytes)
  }
}

type Bytes = Uint8Array<ArrayBuffer>

/** Limit on the signatures to try: each costs an HMAC, and Assay sends fewer. */
const maxSignatures = 8

/** Reads `v1,<base64>` entries separated by spaces, and ignores other versions. */
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

/** Decodes the part after `whsec_`. A secret in another format is used as text. */
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
    `The timestamp of the webhook is ${Math.round(ageSeconds)} s from the current time; ${toleranceSeconds} s are allowed. Check the clock of this machine.`,
    'too-old',
  )
}

function requireResult(bytes: Bytes): ScanResult {
  try {
    const value: unknown = JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(bytes))
    if (isScanResult(value)) return value
  } catch {
    // The error below covers a body that is not JSON.
  }
  throw new WebhookRejected('The webhook is signed, but its body is not a scan result.', 'unreadable')
}

function requireSecrets(secret: string | readonly string[]): string[] {
  const secrets = typeof secret === 'string' ? [secret] : [...(secret ?? [])]
  const areValid = secrets.length > 0 && secrets.every((one) => typeof one === 'string' && one !== '')
  if (!areValid) throw new TypeError('The webhook secret is missing. The operator and the console can show it.')
  return secrets
}

const newWrongSignature = () =>
  new WebhookRejected(
    'The signature does not match. Check the secret, and pass the body as the bytes that were received.',
    'wrong-signature',
  )

function findHeader(headers: WebhookHeaders, name: string): string | undefined {
  if (typeof headers.get === 'function') return headers.get(name) ?? undefined
  const value = Object.entries(headers).find(([key]) => key.toLowerCase() === name)?.[1]
  return Array.isArray(value) ? value.join(' ') : (value as string | undefined)
}

const encode = (text: string): Bytes => new TextEncoder().encode(text) as Bytes

/** Rejects a parsed body, which cannot be verified. */
function toBytes(body: Uint8Array | ArrayBuffer): Bytes {
  if (body instanceof ArrayBuffer) return new Uint8Array(body)
  if (body instanceof Uint8Array) return body as Bytes
  throw new TypeError('Pass the body of the webhook as the bytes that were received, before anything parses it.')
}

function concat(head: Bytes, tail: Bytes): Bytes {
  const all = new Uint8Array(head.length + tail.length)
  all.set(head)
  all.set(tail, head.length)
  return all
}
