import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { describe, test } from 'node:test'
import { verifyWebhook, type WebhookFault, type WebhookHeaders, WebhookRejected } from '@assay/client'

type Vector = {
  name: string
  secret: string
  at: string
  body: string
  headers: Record<string, string>
  fault: WebhookFault | null
}
const file = new URL('../webhook-vectors.json', import.meta.url)
const { vectors } = JSON.parse(readFileSync(file, 'utf8')) as { vectors: Vector[] }
const [first] = vectors
assert(first !== undefined)

const lower = (headers: Record<string, string>) =>
  Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]))

describe('a webhook', () => {
  for (const { name, secret, at, body, headers, fault } of vectors) {
    test(`with ${name} is ${fault ?? 'genuine'}`, async () => {
      const forms: WebhookHeaders[] = [headers, lower(headers), new Headers(headers)]
      for (const form of forms) {
        const verifying = verifyWebhook(Buffer.from(body), form, secret, { at: new Date(at) })
        if (fault === null) assert.deepEqual(await verifying, JSON.parse(body))
        else await assert.rejects(verifying, (error) => error instanceof WebhookRejected && error.fault === fault)
      }
    })
  }

  test('is verified with any of several secrets, and from any type of bytes', async () => {
    const at = { at: new Date(first.at) }
    const bytes = new TextEncoder().encode(first.body)
    const padded = new Uint8Array([0, ...bytes, 0]).subarray(1, -1)
    for (const body of [bytes, bytes.buffer, Buffer.from(first.body), padded]) {
      assert.equal((await verifyWebhook(body, first.headers, ['other', first.secret], at)).status, 'threat')
    }
    await assert.rejects(verifyWebhook(bytes, first.headers, ['other', 'another'], at), { fault: 'wrong-signature' })
  })

  test('is accepted within the tolerance that the receiver sets', async () => {
    const body = Buffer.from(first.body)
    await assert.rejects(verifyWebhook(body, first.headers, first.secret), { fault: 'too-old' })
    await verifyWebhook(body, first.headers, first.secret, { toleranceSeconds: Number.POSITIVE_INFINITY })
    const onlyOurs = { 'x-api-signature': first.headers['X-Api-Signature'] }
    await verifyWebhook(body, onlyOurs, first.secret)
    await assert.rejects(verifyWebhook(body, onlyOurs, first.secret, { accept: 'standard' }), { fault: 'unsigned' })
  })

  test('without a secret, or with a parsed body, is a TypeError', async () => {
    const body = Buffer.from(first.body)
    for (const secret of ['', [], [''], undefined as unknown as string]) {
      await assert.rejects(verifyWebhook(body, first.headers, secret), {
        name: 'TypeError',
        message: /secret is missing/,
      })
    }
    const parsed = JSON.parse(first.body) as Uint8Array
    await assert.rejects(verifyWebhook(parsed, first.headers, first.secret), { message: /bytes that were received/ })
  })

  test('with a thousand signatures is verified against the first few only', async () => {
    const headers = {
      ...first.headers,
      'webhook-signature': 'v1,AAAA '.repeat(1000) + first.headers['webhook-signature'],
    }
    await assert.rejects(verifyWebhook(Buffer.from(first.body), headers, first.secret), { fault: 'wrong-signature' })
  })
})
