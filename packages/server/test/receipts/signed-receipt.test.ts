import assert from 'node:assert/strict'
import { createHmac, createPrivateKey, sign } from 'node:crypto'
import { describe, test } from 'node:test'
import { newReceiptKey, type Receipt, signReceipt, toPublicKey, verifyReceipt } from '../../src/domain/receipts.ts'
import { toScanResult } from '../../src/domain/scans/scan.ts'
import { newTestScan } from '../support/test-scan.ts'

const receipt: Receipt = {
  iss: 'https://assay.example.com',
  iat: 1_800_000_000,
  installation_id: '0199a3c5-52f1-4c39-8f0e-6f1d5d0f6a3b',
  result: toScanResult(newTestScan({ status: 'clean', signals: [], metadata: { hash_sha256: '00' } })),
}
const [key, other] = [newReceiptKey(), newReceiptKey()]
const keys = { keys: [other, key].map(({ publicKey }) => toPublicKey(publicKey)) }
const signed = signReceipt(receipt, key)
const [head = '', body = '', signature = ''] = signed.split('.')
const encode = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64url')
const header = { alg: 'EdDSA', typ: 'assay-receipt+jwt', kid: key.id }

/** Signs any header and body with a real key. */
function signAny(head: unknown, body: unknown, { privateKey } = key) {
  const text = `${encode(head)}.${encode(body)}`
  const opened = createPrivateKey({ key: privateKey, format: 'der', type: 'pkcs8' })
  return `${text}.${sign(null, Buffer.from(text), opened).toString('base64url')}`
}

test('a receipt is verified by the key that it names', () => {
  assert.deepEqual(verifyReceipt(signed, keys), { receipt, kid: key.id })
  assert.deepEqual(verifyReceipt(signAny(header, receipt), keys), { receipt, kid: key.id })
})

describe('a receipt is refused', () => {
  const threat = encode({ ...receipt, result: { ...receipt.result, status: 'threat' } })
  const hmacHead = encode({ ...header, alg: 'HS256' })
  const hmac = createHmac('sha256', key.publicKey).update(`${hmacHead}.${body}`).digest('base64url')
  const cases: Record<string, [text: string, fault: RegExp, keys?: unknown]> = {
    'with another body': [`${head}.${threat}.${signature}`, /signature does not match/],
    'with another header': [`${encode({ ...header, extra: 1 })}.${body}.${signature}`, /signature does not match/],
    'with a shorter signature': [`${head}.${body}.${signature.slice(0, -4)}`, /signature does not match/],
    'signed by another key than it names': [signAny(header, receipt, other), /signature does not match/],
    'with a key that is not listed': [signed, /not among the given keys/, { keys: keys.keys.slice(0, 1) }],
    'without a key id': [signAny({ ...header, kid: undefined }, receipt), /not among the given keys/],
    'with alg none': [`${encode({ ...header, alg: 'none' })}.${body}.`, /not the three parts/],
    'with alg none and some signature': [`${encode({ ...header, alg: 'none' })}.${body}.AAAA`, /must have alg EdDSA/],
    'with an HMAC of the public key': [`${hmacHead}.${body}.${hmac}`, /must have alg EdDSA/],
    'of another type': [signAny({ ...header, typ: 'JWT' }, receipt), /must have alg EdDSA and typ/],
    'with a critical extension': [signAny({ ...header, crit: ['exp'] }, receipt), /must have alg EdDSA/],
    'that holds no result': [signAny(header, { ...receipt, result: {} }), /no receipt/],
    'in two parts': [`${head}.${body}`, /not the three parts/],
    'of blanks': ['   ', /not the three parts/],
    'with a line break inside': [`${head}.${body}\n.${signature}`, /not the three parts/],
    'that is no JSON': ['aaaa.bbbb.cccc', /not the three parts/],
    'with keys that are none': [signed, /not among the given keys/, { keys: 'x' }],
    'with null for keys': [signed, /not among the given keys/, null],
    'with a key under the id of another': [
      signAny(header, receipt, other),
      /not among the given keys/,
      { keys: [{ ...toPublicKey(other.publicKey), kid: key.id }] },
    ],
  }
  for (const [name, [text, fault, given]] of Object.entries(cases)) {
    test(name, () => {
      const verified = verifyReceipt(text, given === undefined ? keys : given)
      assert('fault' in verified)
      assert.match(verified.fault, fault)
    })
  }
})
