import type { ScanResult } from '../results.ts'
import { makeVerifyWebhook, type VerifyOptions } from '../verify-webhook.ts'
import { handleRequest } from './fetch-handler.ts'
import type { Delivery } from './receive.ts'

export type { Delivery } from './receive.ts'

/** Options of a Worker, which gets its secrets from `env` with each request. */
export type WorkerReceiverOptions<Env> = Omit<VerifyOptions, 'at'> & {
  secret(env: Env): string | readonly string[]
  /** Called as in the other receivers, with the `env` of the Worker. */
  onResult(result: ScanResult, delivery: Delivery, env: Env): void | Promise<void>
}

const verify = /* @__PURE__ */ makeVerifyWebhook(() => globalThis.crypto.subtle)

/** Worker for `export default receiveWebhooks({ secret: (env) => env.WEBHOOK_SECRET, onResult })`. */
export function receiveWebhooks<Env>({ secret, onResult, ...options }: WorkerReceiverOptions<Env>) {
  return {
    fetch: (request: Request, env: Env): Promise<Response> =>
      handleRequest(
        verify,
        { ...options, secret: secret(env), onResult: (result, delivery) => onResult(result, delivery, env) },
        request,
      ),
  }
}
