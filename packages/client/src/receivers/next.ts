import { makeVerifyWebhook } from '../verify-webhook.ts'
import { handleRequest } from './fetch-handler.ts'
import type { ReceiverOptions } from './receive.ts'

export type { Delivery, ReceiverOptions } from './receive.ts'

const verify = /* @__PURE__ */ makeVerifyWebhook(() => globalThis.crypto.subtle)

/** Handler for `app/webhooks/assay/route.ts`: `export const POST = receiveWebhooks({ secret, onResult })`. */
export function receiveWebhooks(options: ReceiverOptions) {
  return (request: Request): Promise<Response> => handleRequest(verify, options, request)
}
