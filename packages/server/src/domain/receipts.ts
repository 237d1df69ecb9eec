import { createPrivateKey, createPublicKey, generateKeyPairSync, hash, sign, verify } from 'node:crypto'
import type { ScanResult } from '@assay/contract'
import type { Clock } from './clock.ts'
import type { ReceiptKeyStore } from './ports/secret-store.ts'
import { Problem } from './problem.ts'
import { type Scan, toScanResult } from './scans/scan.ts'
import type { Scanning } from './scans/scanning.ts'
import { isTestScan } from './test-mode.ts'

type Deps = {
  scanning: Pick<Scanning, 'getScan'>
  keys: Pick<ReceiptKeyStore, 'getSigningKey'>
  clock: Clock
  publicUrl: string | undefined
  getInstallationId(): Promise<string>
}

/** Signed receipts of results. A receipt holds the result as it was recorded: nothing in it is computed again. */
export function makeReceipts(deps: Deps) {
  /** Adds `metadata.receipt` to a completed scan. A pending one stays as it is: there is nothing to sign yet. */
  async function addReceipt(scan: Scan): Promise<Scan> {
    if (scan.status === 'pending') return scan
    // A program that checks only the signature would take a signed test result for a verdict on content.
    if (isTestScan(scan)) throw new Problem({ kind: 'validation', errors: { receipt: [noTests] } })
    const installationId = await deps.getInstallationId()
    const claims = {
      iss: deps.publicUrl ?? `urn:uuid:${installationId}`,
      iat: Math.floor(deps.clock.now().getTime() / 1000),
      installation_id: installationId,
      result: toScanResult(scan),
    }
    const receipt = signReceipt(claims, await deps.keys.getSigningKey())
    return { ...scan, metadata: { ...scan.metadata, receipt } }
  }

  const getScan: Scanning['getScan'] = async (...request) => addReceipt(await deps.scanning.getScan(...request))
  return { addReceipt, getScan }
}

export type Receipts = ReturnType<typeof makeReceipts>

const noTests = 'A result of a test key has no receipt, because nothing was scanned.'

/** The claims of a receipt: a completed result as `GET` shows it, with who signed it and when. */
export type Receipt = {
  /** The public URL of the installation, or its id as a URN. */
  iss: string
  /** Time of the signature, in seconds since 1970. */
  iat: number
  installation_id: string
  result: ScanResult
}

/** A key as the well-known address publishes it: a JSON Web Key of RFC 8037. */
export type PublicReceiptKey = { kty: 'OKP'; crv: 'Ed25519'; x: string; kid: string; alg: 'EdDSA'; use: 'sig' }

export type NewReceiptKey = {
  id: string
  /** The 32 bytes of the public key. */
  publicKey: Buffer
  /** The private key as PKCS #8, in DER. */
  privateKey: Buffer
}

const alg = 'EdDSA'
/** A type of its own, so that a token that the same key might sign for another purpose is no receipt. */
const typ = 'assay-receipt+jwt'

/** Makes a key whose id begins with no hyphen, because commands take an id as an argument. */
export function newReceiptKey(): NewReceiptKey {
  for (;;) {
    const key = drawKey()
    if (!key.id.startsWith('-')) return key
  }
}

function drawKey(): NewReceiptKey {
  const pair = generateKeyPairSync('ed25519')
  const publicKey = Buffer.from(pair.publicKey.export({ format: 'jwk' }).x ?? '', 'base64url')
  const privateKey = pair.privateKey.export({ format: 'der', type: 'pkcs8' })
  return { id: toKeyId(publicKey), publicKey, privateKey }
}

/** The thumbprint of RFC 7638: the id of a key follows from the key, so no two keys can share one. */
const toKeyId = (publicKey: Buffer): string =>
  hash('sha256', JSON.stringify({ crv: 'Ed25519', kty: 'OKP', x: publicKey.toString('base64url') }), 'base64url')

export const toPublicKey = (publicKey: Buffer): PublicReceiptKey => ({
  kty: 'OKP',
  crv: 'Ed25519',
  x: publicKey.toString('base64url'),
  kid: toKeyId(publicKey),
  alg,
  use: 'sig',
})

/** Signs a receipt as a JSON Web Signature in its compact form. */
export function signReceipt(receipt: Receipt, { id, privateKey }: Omit<NewReceiptKey, 'publicKey'>): string {
  const signed = `${encodePart({ alg, typ, kid: id })}.${encodePart(receipt)}`
  const key = createPrivateKey({ key: privateKey, format: 'der', type: 'pkcs8' })
  return `${signed}.${sign(null, Buffer.from(signed), key).toString('base64url')}`
}

const encodePart = (value: object): string => Buffer.from(JSON.stringify(value)).toString('base64url')

export type Verification = { receipt: Receipt; kid: string } | { fault: string }

/** Checks a receipt against the keys of an installation. A fault is a sentence. */
export function verifyReceipt(text: string, keys: unknown): Verification {
  const [, head = '', body = '', signature = ''] = /^([\w-]+)\.([\w-]+)\.([\w-]+)$/.exec(text) ?? []
  const header = decodePart(head)
  if (header === undefined) return { fault: 'This is not a receipt: it has not the three parts of a signature.' }
  // Only the algorithm of the keys is accepted: "none" and the symmetric ones would let anyone sign.
  if (header.alg !== alg || header.typ !== typ || 'crit' in header)
    return { fault: `This is not a receipt of Assay: its header must have alg ${alg} and typ ${typ}.` }
  const jwk = listUsableKeys(keys).find(({ kid }) => kid === header.kid)
  if (jwk === undefined)
    return { fault: `The receipt is signed with the key ${header.kid}, which is not among the given keys.` }
  const key = createPublicKey({ key: { kty: 'OKP', crv: 'Ed25519', x: jwk.x }, format: 'jwk' })
  if (!verify(null, Buffer.from(`${head}.${body}`), key, Buffer.from(signature, 'base64url')))
    return { fault: 'The signature does not match: the receipt was changed, or another key signed it.' }
  const receipt = decodePart(body)
  if (!isReceipt(receipt)) return { fault: 'The signature is valid, but the signed text is no receipt.' }
  return { receipt, kid: jwk.kid }
}

function decodePart(part: string): Record<string, unknown> | undefined {
  try {
    const value: unknown = JSON.parse(Buffer.from(part, 'base64url').toString())
    return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : undefined
  } catch {
    return undefined
  }
}

/** The usable keys of a JSON Web Key Set. Keys of other kinds are ignored, as RFC 7517 demands. */
function listUsableKeys(keys: unknown): PublicReceiptKey[] {
  const list = typeof keys === 'object' && keys !== null && 'keys' in keys ? keys.keys : undefined
  return (Array.isArray(list) ? list : []).filter(
    (key) =>
      key?.kty === 'OKP' &&
      key.crv === 'Ed25519' &&
      typeof key.x === 'string' &&
      /^[\w-]{43}$/.test(key.x) &&
      key.kid === toKeyId(Buffer.from(key.x, 'base64url')),
  )
}

function isReceipt(value: object | undefined): value is Receipt {
  const { iss, iat, installation_id, result } = (value ?? {}) as Partial<Receipt>
  return (
    typeof iss === 'string' &&
    typeof iat === 'number' &&
    typeof installation_id === 'string' &&
    typeof result?.id === 'string' &&
    typeof result.status === 'string'
  )
}
