import { WebhookRejected } from '../errors.ts'
import type { ScanResult } from '../results.ts'
import type { VerifyOptions, VerifyWebhook, WebhookHeaders } from '../verify-webhook.ts'

export type ReceiverOptions = Omit<VerifyOptions, 'at'> & {
  /** Webhook secret of the account, or several during a rotation. */
  secret: string | readonly string[]
  /**
   * Called with each result whose signature is valid. A result can arrive more than once: keep the `id` of processed
   * results. If this throws, the response is 500 and Assay sends the webhook again. Assay waits 15 seconds for a response.
   */
  onResult(result: ScanResult, delivery: Delivery): void | Promise<void>
}

export type Delivery = {
  /** Value of `webhook-id`, the same in every attempt of this delivery. Undefined if the request has none. */
  id: string | undefined
}

/** Limit on the body of a webhook. A result has less than 10 KB. */
export const maxBodyBytes = 256 * 1024

export type Reply = { status: 200 | 400 | 401 | 405; text: string }

export const tooLarge: Reply = { status: 400, text: `The body is larger than ${maxBodyBytes} bytes.\n` }
export const methodNotAllowed: Reply = { status: 405, text: 'Send webhooks by POST.\n' }

/** Verifies a webhook, passes its result to `onResult` and returns the response to send. */
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

/** Reads the body; undefined if it is larger than `maxBodyBytes`. */
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
