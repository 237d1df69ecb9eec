import { subtle } from '../platform/node-crypto.ts'
import { makeVerifyWebhook, type WebhookHeaders } from '../verify-webhook.ts'
import { notPosted, type ReceiverOptions, type Reply, readBody, receive, tooLarge } from './receive.ts'

export type { Delivery, ReceiverOptions } from './receive.ts'

/** As much of Express, or of Node itself, as is used here. */
type Request = AsyncIterable<Uint8Array> & {
  method?: string | undefined
  headers: Record<string, string | string[] | undefined>
  body?: unknown
}
type Response = {
  statusCode: number
  setHeader(name: string, value: string): unknown
  end(text: string): unknown
}
type Next = (error?: unknown) => void

const verify = /* @__PURE__ */ makeVerifyWebhook(() => subtle)

/** `app.post('/webhooks/assay', receiveWebhooks({ secret, onResult }))`, before `express.json()` or on a path without it. */
export function receiveWebhooks(options: ReceiverOptions) {
  return async (request: Request, response: Response, next: Next): Promise<void> => {
    try {
      const { status, text } = await toReply(request, options)
      response.statusCode = status
      response.setHeader('Content-Type', 'text/plain; charset=utf-8')
      response.end(text)
    } catch (error) {
      next(error)
    }
  }
}

async function toReply(request: Request, options: ReceiverOptions): Promise<Reply> {
  if (request.method !== 'POST') return notPosted
  const body = await getBytes(request)
  return body === undefined ? tooLarge : await receive(verify, options, body, request.headers as WebhookHeaders)
}

/** `express.raw()` leaves the bytes; any other parser takes them away. */
async function getBytes(request: Request): Promise<Uint8Array | undefined> {
  if (request.body instanceof Uint8Array) return request.body
  if (request.body === undefined) return await readBody(request)
  throw new Error('Something parsed the webhook already. Put receiveWebhooks before express.json().')
}
