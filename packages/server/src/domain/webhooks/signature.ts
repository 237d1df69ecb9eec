import { createHmac } from 'node:crypto'
import { webhookHeaders } from '@assay/contract'

type DeliveryToSign = {
  /** Identifier of the delivery, sent in every attempt so that receivers can deduplicate. */
  id: string
  body: Buffer
  /** The secret of the account, followed by its previous one while that is still valid. */
  secrets: readonly string[]
  /** The time of this attempt. */
  at: Date
}

/**
 * The headers that prove the origin of a delivery. `X-Api-Signature` signs the body with the current secret; the
 * headers of Standard Webhooks also sign id and time, with every valid secret.
 */
export function toSignatureHeaders({ id, body, secrets, at }: DeliveryToSign): Record<string, string> {
  const [currentSecret] = secrets
  if (currentSecret === undefined) throw new Error(`The account of delivery ${id} has no webhook secret`)
  const timestamp = String(Math.floor(at.getTime() / 1000))
  const signatures = secrets.map((secret) => {
    const hmac = createHmac('sha256', toStandardKey(secret)).update(`${id}.${timestamp}.`).update(body)
    return `v1,${hmac.digest('base64')}`
  })
  return {
    [webhookHeaders.signature]: createHmac('sha256', Buffer.from(currentSecret)).update(body).digest('hex'),
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
