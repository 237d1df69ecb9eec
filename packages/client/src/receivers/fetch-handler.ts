import { iterateStream } from '../iterate-stream.ts'
import type { VerifyWebhook } from '../verify-webhook.ts'
import { methodNotAllowed, type ReceiverOptions, readBody, receive, tooLarge } from './receive.ts'

/** Handles a webhook in any framework that uses Request and Response. */
export async function handleRequest(
  verify: VerifyWebhook,
  options: ReceiverOptions,
  request: Request,
): Promise<Response> {
  const { status, text } = await toReply(verify, options, request)
  return new Response(text, { status, headers: { 'Content-Type': 'text/plain; charset=utf-8' } })
}

async function toReply(verify: VerifyWebhook, options: ReceiverOptions, request: Request) {
  if (request.method !== 'POST') return methodNotAllowed
  const body = request.body === null ? new Uint8Array() : await readBody(iterateStream(request.body))
  return body === undefined ? tooLarge : await receive(verify, options, body, request.headers)
}
