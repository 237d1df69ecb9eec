import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { describe, test } from 'node:test'
import { newWebhookSecret } from '../../src/domain/accounts/keys.ts'
import { toAnswerText, toSignatureHeaders } from '../../src/domain/webhooks/deliver.ts'

const openssl = 'openssl'
const id = '0199a3c5-52f1-7c39-8f0e-6f1d5d0f6a3b'
const at = new Date('2027-03-01T12:00:00.999Z')
const timestamp = '1803902400'
const body = Buffer.from('{"id":"ä€😀","status":"clean"}')

/** HMAC-SHA256 by another hand than ours. */
function digestByOpenssl(key: Buffer, message: Buffer): Buffer {
  const args = ['dgst', '-sha256', '-mac', 'HMAC', '-macopt', `hexkey:${key.toString('hex')}`, '-binary']
  return execFileSync(openssl, args, { input: message })
}

type Vector = { name: string; signedWith?: string[]; body: string; headers: Record<string, string> }
const vectorsFile = new URL('../../../client/webhook-vectors.json', import.meta.url)
const { vectors } = JSON.parse(readFileSync(vectorsFile, 'utf8')) as { vectors: Vector[] }

describe('the signature', () => {
  test('is that of the vectors which receivers are tested with', () => {
    const signed = vectors.filter(({ signedWith }) => signedWith !== undefined)
    assert(signed.length >= 5)
    for (const { name, signedWith = [], body: text, headers } of signed) {
      const [id = '', timestamp = ''] = [headers['webhook-id'], headers['webhook-timestamp']]
      const signing = {
        id,
        body: Buffer.from(text),
        secrets: signedWith,
        attempts: 0,
        at: new Date(Number(timestamp) * 1000),
      }
      assert.deepEqual(toSignatureHeaders(signing), headers, name)
    }
  })

  test('is that of the published example of Standard Webhooks', () => {
    const headers = toSignatureHeaders({
      id: 'msg_p5jXN8AQM9LWM0D4loKWxJek',
      body: Buffer.from('{"test": 2432232314}'),
      secrets: ['whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw'],
      attempts: 0,
      at: new Date(1614265330_000),
    })
    assert.equal(headers['webhook-id'], 'msg_p5jXN8AQM9LWM0D4loKWxJek')
    assert.equal(headers['webhook-timestamp'], '1614265330')
    assert.equal(headers['webhook-signature'], 'v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=')
  })

  test('of the body alone is lower-case hex, keyed with the bytes of the secret as it is written', () => {
    for (const secret of [newWebhookSecret(), 'a secret of the operator: ä€😀']) {
      const headers = toSignatureHeaders({ id, body, secrets: [secret], attempts: 0, at })
      assert.match(headers['X-Api-Signature'] ?? '', /^[0-9a-f]{64}$/)
      assert.equal(headers['X-Api-Signature'], digestByOpenssl(Buffer.from(secret), body).toString('hex'))
    }
  })

  test('of Standard Webhooks is keyed with what whsec_ stands before, decoded, or with the bytes of any other secret', () => {
    const key = Buffer.from('0123456789abcdef0123456789abcdef')
    const signed = Buffer.concat([Buffer.from(`${id}.${timestamp}.`), body])
    const cases: [secret: string, key: Buffer][] = [
      [`whsec_${key.toString('base64')}`, key],
      ['plain-secret', Buffer.from('plain-secret')],
      ['whsec_not!base64', Buffer.from('whsec_not!base64')],
      ['whsec_', Buffer.from('whsec_')],
    ]
    for (const [secret, expected] of cases) {
      const headers = toSignatureHeaders({ id, body, secrets: [secret], attempts: 0, at })
      assert.equal(headers['webhook-timestamp'], timestamp)
      assert.equal(headers['webhook-signature'], `v1,${digestByOpenssl(expected, signed).toString('base64')}`, secret)
    }
  })

  test('is made with both secrets after a rotation: at once by the standard, in turns in ours', () => {
    const [fresh, old] = [newWebhookSecret(), newWebhookSecret()]
    const sign = (secrets: string[], attempts = 0) => toSignatureHeaders({ id, body, secrets, attempts, at })
    const [one, other] = [sign([fresh]), sign([old])]
    for (const attempts of [0, 1, 2, 3]) {
      const both = sign([fresh, old], attempts)
      assert.equal(both['webhook-signature'], `${one['webhook-signature']} ${other['webhook-signature']}`)
      assert.equal(both['X-Api-Signature'], (attempts % 2 === 0 ? one : other)['X-Api-Signature'])
    }
    assert.equal(sign([fresh], 3)['X-Api-Signature'], one['X-Api-Signature'])
  })

  test('is never left out: without a secret nothing is made', () => {
    assert.throws(() => toSignatureHeaders({ id, body, secrets: [], attempts: 0, at }), /has no webhook secret/)
  })
})

describe('the text of an answer', () => {
  test('is its first kilobyte, and no character is cut in two', () => {
    assert.equal(toAnswerText(Buffer.from('thanks ä€😀')), 'thanks ä€😀')
    assert.equal(toAnswerText(Buffer.alloc(5000, 'x')), 'x'.repeat(1024))
    assert.equal(toAnswerText(Buffer.from('€'.repeat(1000))), '€'.repeat(341))
    assert.equal(toAnswerText(Buffer.alloc(0)), '')
  })

  test('is well-formed, without NUL and no longer, whatever bytes came', () => {
    for (const bytes of [
      Buffer.alloc(2000),
      Buffer.alloc(2000, 0xff),
      Buffer.from([0x61, 0, 0xed, 0xa0, 0x80, 0xc3]),
    ]) {
      const text = toAnswerText(bytes)
      assert(text.isWellFormed())
      assert(!text.includes('\0'))
      assert(text.length > 0 && Buffer.byteLength(text) <= 1024)
    }
  })
})
