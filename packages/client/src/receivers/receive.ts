import { WebhookRejected } from '../errors.ts'
import type { ScanResult } from '../results.ts'
import type { VerifyOptions, VerifyWebhook, WebhookHeaders } from '../verify-webhook.ts'

export type ReceiverOptions = Omit<VerifyOptions, 'at'> & {
  /** The webhook secret of the account, or several while it is being changed. */
  secret: string | readonly string[]
  /**
   * Gets every result that is genuine. A result can come more than once: keep the `id` of what was dealt with. What
   * throws here is answered with 500, and Assay sends it again. It gives up waiting for the answer after 15 seconds.
   */
  onResult(result: ScanResult, delivery: Delivery): void | Promise<void>
}

export type Delivery = {
  /** `webhook-id`: the same in every attempt at this delivery. Undefined where the sender gives none. */
  id: string | undefined
}

/** A result has less than 10 KB. */
export const maxBodyBytes = 256 * 1024

export type Reply = { status: 200 | 400 | 401 | 405; text: string }

export const tooLarge: Reply = { status: 400, text: `The body is larger than ${maxBodyBytes} bytes.\n` }
export const notPosted: Reply = { status: 405, text: 'Webhooks come by POST.\n' }

/** What every receiver does with the bytes of a request. */
export async function receive(
  verify: VerifyWebhook,
  { secret, onResult, ...options }: ReceiverOptions,
  body: Uint8Array,
  headers: WebhookHeaders,
): Promise<Reply> {
  const result = await verify(body, headers, secret, options).catch((error: unknown) => {
    if (error instanceof WebhookRejected) return error
    throw error
  })
  if (result instanceof WebhookRejected) {
    return { status: result.fault === 'unreadable' ? 400 : 401, text: `${result.message}\n` }
  }
  await onResult(result, { id: findDeliveryId(headers) })
  return { status: 200, text: 'ok\n' }
}

/** Undefined: there is more of it than a webhook has. */
export async function readBody(chunks: AsyncIterable<Uint8Array>): Promise<Uint8Array | undefined> {
  const all: Uint8Array[] = []
  let bytes = 0
  for await (const chunk of chunks) {
    bytes += chunk.length
    if (bytes > maxBodyBytes) return undefined
    all.push(chunk)
  }
  const body = new Uint8Array(bytes)
  let at = 0
  for (const chunk of all) {
    body.set(chunk, at)
    at += chunk.length
  }
  return body
}

function findDeliveryId(headers: WebhookHeaders): string | undefined {
  if (typeof headers.get === 'function') return headers.get('webhook-id') ?? undefined
  const value = (headers as Record<string, string | string[] | undefined>)['webhook-id']
  return typeof value === 'string' ? value : undefined
}
