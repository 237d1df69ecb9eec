import { createHmac } from 'node:crypto'
import { webhookHeaders } from '@assay/contract'

type DeliveryToSign = {
  /** Identifier of the delivery, sent in every attempt so that receivers can deduplicate. */
  id: string
  body: Buffer
  /** The secret of the account, followed by its previous one while that is still valid. */
  secrets: readonly string[]
  /** Attempts before this one. */
  attempts: number
  /** The time of this attempt. */
  at: Date
}

/**
 * The headers that prove the origin of a delivery. The headers of Standard Webhooks sign body, id and time with every
 * valid secret. `X-Api-Signature` has room for one signature of the body: the first attempt uses the current secret, and
 * further attempts take turns, so that a receiver that knows either secret gets the delivery.
 */
export function toSignatureHeaders({ id, body, secrets, attempts, at }: DeliveryToSign): Record<string, string> {
  const secret = secrets[attempts % secrets.length]
  if (secret === undefined) throw new Error(`The account of delivery ${id} has no webhook secret`)
  const timestamp = String(Math.floor(at.getTime() / 1000))
  const signatures = secrets.map((valid) => {
    const hmac = createHmac('sha256', toStandardKey(valid)).update(`${id}.${timestamp}.`).update(body)
    return `v1,${hmac.digest('base64')}`
  })
  return {
    [webhookHeaders.signature]: createHmac('sha256', Buffer.from(secret)).update(body).digest('hex'),
    [webhookHeaders.id]: id,
    [webhookHeaders.timestamp]: timestamp,
    [webhookHeaders.standardSignature]: signatures.join(' '),
  }
}

/** Standard Webhooks decodes the text after `whsec_` into the key. Secrets that operators chose may have any form. */
function toStandardKey(secret: string): Buffer {
  const encoded = /^whsec_([A-Za-z0-9+/]+={0,2})$/.exec(secret)?.[1]
  return encoded === undefined ? Buffer.from(secret) : Buffer.from(encoded, 'base64')
}
