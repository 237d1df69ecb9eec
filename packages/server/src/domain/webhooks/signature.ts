import { createHmac } from 'node:crypto'

type Signed = {
  /** Of the delivery: the same over all its attempts. */
  id: string
  body: Buffer
  /** The account's, and after it the one before while that still signs. */
  secrets: readonly string[]
  /** When this attempt is made. */
  at: Date
}

/**
 * The headers that prove where a delivery comes from: ours over the body alone, with the account's secret; and those of
 * Standard Webhooks, which also cover the time, with every secret that still signs.
 */
export function toSignatureHeaders({ id, body, secrets, at }: Signed): Record<string, string> {
  const [secret] = secrets
  if (secret === undefined) throw new Error(`Nothing to sign delivery ${id} with`)
  const timestamp = String(Math.floor(at.getTime() / 1000))
  const signatures = secrets.map((each) => {
    const hmac = createHmac('sha256', toStandardKey(each)).update(`${id}.${timestamp}.`).update(body)
    return `v1,${hmac.digest('base64')}`
  })
  return {
    'X-Api-Signature': createHmac('sha256', Buffer.from(secret)).update(body).digest('hex'),
    'webhook-id': id,
    'webhook-timestamp': timestamp,
    'webhook-signature': signatures.join(' '),
  }
}

/** That standard keys with what `whsec_` stands before, decoded. Operators may have set secrets of any other form. */
function toStandardKey(secret: string): Buffer {
  const encoded = /^whsec_([A-Za-z0-9+/]+={0,2})$/.exec(secret)?.[1]
  return encoded === undefined ? Buffer.from(secret) : Buffer.from(encoded, 'base64')
}
