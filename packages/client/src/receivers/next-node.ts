import { subtle } from '../platform/node-crypto.ts'
import { makeVerifyWebhook } from '../verify-webhook.ts'
import { handleRequest } from './fetch-handler.ts'
import type { ReceiverOptions } from './receive.ts'

export type { Delivery, ReceiverOptions } from './receive.ts'

const verify = /* @__PURE__ */ makeVerifyWebhook(() => subtle)

/** The handler of next.ts with Node's crypto, because Node 18 has no global WebCrypto. */
export function receiveWebhooks(options: ReceiverOptions) {
  return (request: Request): Promise<Response> => handleRequest(verify, options, request)
}
