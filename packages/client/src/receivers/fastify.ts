import { subtle } from '../platform/node-crypto.ts'
import { makeVerifyWebhook, type WebhookHeaders } from '../verify-webhook.ts'
import { maxBodyBytes, type ReceiverOptions, receive } from './receive.ts'

export type { Delivery, ReceiverOptions } from './receive.ts'

/** The part of Fastify that the receiver uses. */
type Fastify = {
  removeAllContentTypeParsers(): void
  addContentTypeParser(
    type: string,
    options: { parseAs: 'buffer'; bodyLimit: number },
    parse: (request: unknown, body: Uint8Array, done: (error: null, body: Uint8Array) => void) => void,
  ): unknown
  post(path: string, handle: (request: FastifyRequest, reply: FastifyReply) => Promise<unknown>): unknown
}
type FastifyRequest = { body: unknown; headers: Record<string, string | string[] | undefined> }
type FastifyReply = { code(status: number): { type(type: string): { send(text: string): unknown } } }

const verify = /* @__PURE__ */ makeVerifyWebhook(() => subtle)

/**
 * Plugin for `app.register(receiveWebhooks({ path: '/webhooks/assay', secret, onResult }))`. It does not change the
 * parsers of the rest of the application.
 */
export function receiveWebhooks({ path, ...options }: ReceiverOptions & { path: string }) {
  return async (app: Fastify): Promise<void> => {
    app.removeAllContentTypeParsers()
    app.addContentTypeParser('*', { parseAs: 'buffer', bodyLimit: maxBodyBytes }, (_request, body, done) =>
      done(null, body),
    )
    app.post(path, async (request, reply) => {
      const body = request.body instanceof Uint8Array ? request.body : new Uint8Array()
      const { status, text } = await receive(verify, options, body, request.headers as WebhookHeaders)
      return reply.code(status).type('text/plain; charset=utf-8').send(text)
    })
  }
}
