import { subtle } from '../platform/node-crypto.ts'
import { makeVerifyWebhook, type WebhookHeaders } from '../verify-webhook.ts'
import { methodNotAllowed, type ReceiverOptions, type Reply, readBody, receive, tooLarge } from './receive.ts'

export type { Delivery, ReceiverOptions } from './receive.ts'

/** The part of Express, or of Node's http, that the receiver uses. */
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

/**
 * Handler for `app.post('/webhooks/assay', receiveWebhooks({ secret, onResult }))`. Register it before `express.json()`,
 * or on a path without it.
 */
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
  if (request.method !== 'POST') return methodNotAllowed
  const body = await getBytes(request)
  return body === undefined ? tooLarge : await receive(verify, options, body, request.headers as WebhookHeaders)
}

/** Takes the bytes that `express.raw()` left, or reads them. Other parsers do not keep the bytes. */
async function getBytes(request: Request): Promise<Uint8Array | undefined> {
  if (request.body instanceof Uint8Array) return request.body
  if (request.body === undefined) return await readBody(request)
  throw new Error('Another parser has already read the webhook. Put receiveWebhooks before express.json().')
}
