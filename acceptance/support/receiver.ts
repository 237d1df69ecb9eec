import assert from 'node:assert/strict'
import { createHmac } from 'node:crypto'
import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from 'node:http'
import { buffer } from 'node:stream/consumers'
import { ScanResult } from '@assay/contract'
import { openOrigin } from './origin.ts'
import { Check } from './schema-check.ts'

/** `at` is the time of receipt in seconds; `raw` is the request as received, with lines that end in \n. */
export type Received = { path: string; at: number; headers: IncomingHttpHeaders; body: Buffer; raw: string }

/** The response to send; 'hang' sends none, and 'drop' closes the connection and forgets the webhook. */
export type Reaction = { status: number; headers?: Record<string, string>; text?: string } | 'hang' | 'drop'

/** Receives and records webhooks. `react` gets the path and the number of earlier webhooks on it. */
export async function openReceiver(
  react: (path: string, before: number) => Reaction = () => ({ status: 204 }),
  place: { host?: string } = {},
) {
  const received: Received[] = []
  const counts = new Map<string, number>()
  const onRequest = async (request: IncomingMessage, response: ServerResponse) => {
    const path = request.url ?? ''
    const body = await buffer(request)
    assert.equal(request.method, 'POST')
    const before = counts.get(path) ?? 0
    counts.set(path, before + 1)
    received.push({ path, at: Date.now() / 1000, headers: request.headers, body, raw: toRaw(request, body) })
    const reaction = react(path, before)
    if (reaction === 'hang') return
    if (reaction === 'drop') {
      received.pop()
      request.socket.destroy()
      return
    }
    response.writeHead(reaction.status, reaction.headers).end(reaction.text)
  }
  const origin = await openOrigin((request, response) => void onRequest(request, response).catch(() => {}), place)
  return {
    url: origin.url,
    received,
    at: (path: string) => received.filter((one) => one.path === path),
    close: origin.close,
  }
}

export type Receiver = Awaited<ReturnType<typeof openReceiver>>

function toRaw({ method, url, rawHeaders }: IncomingMessage, body: Buffer): string {
  const lines = rawHeaders.flatMap((name, n) => (n % 2 === 0 ? [`${name}: ${rawHeaders[n + 1]}`] : []))
  return [`${method} ${url} HTTP/1.1`, ...lines, '', body].join('\n')
}

/**
 * Verifies a delivery as a receiver does, written from the documents alone, and returns the result.
 * `secrets` are the secret of the account and the previous one while it still signs.
 */
export function verifyDelivery({ at, headers, body }: Received, ...secrets: [string, ...string[]]): ScanResult {
  const hex = createHmac('sha256', Buffer.from(secrets[0], 'utf8')).update(body).digest('hex')
  assert.equal(headers['x-api-signature'], hex, 'X-Api-Signature')
  assert.equal(headers['content-type'], 'application/json')
  const { 'webhook-id': id, 'webhook-timestamp': timestamp, 'webhook-signature': signatures } = headers
  assert(typeof id === 'string' && id.length > 0)
  assert(Math.abs(at - Number(timestamp)) < 300, `webhook-timestamp is ${timestamp}`)
  const expected = secrets.map((secret) => {
    const hmac = createHmac('sha256', Buffer.from(secret.replace(/^whsec_/, ''), 'base64'))
    return `v1,${hmac.update(`${id}.${timestamp}.`).update(body).digest('base64')}`
  })
  assert.deepEqual(String(signatures).split(' ').sort(), expected.sort(), 'webhook-signature')
  const result: unknown = JSON.parse(body.toString())
  assert(Check(ScanResult, result), body.toString())
  assert.notEqual(result.status, 'pending')
  return result
}
