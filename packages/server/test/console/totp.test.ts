import assert from 'node:assert/strict'
import { test } from 'node:test'
import { findTotpStep, toBase32, toTotpCode, toTotpUri } from '../../src/domain/console/authentication.ts'

const secret = Buffer.from('12345678901234567890')

test('the codes are those of RFC 6238, of which apps show the last six digits', () => {
  const vectors: [seconds: number, code: string][] = [
    [59, '94287082'],
    [1111111109, '07081804'],
    [1111111111, '14050471'],
    [1234567890, '89005924'],
    [2000000000, '69279037'],
    [20000000000, '65353130'],
  ]
  for (const [seconds, code] of vectors) {
    assert.equal(toTotpCode(secret, Math.floor(seconds / 30)), code.slice(2), String(seconds))
  }
})

test('a code is taken one step early or late, and no more', () => {
  const now = new Date(1_234_567_890_000)
  const step = Math.floor(1_234_567_890 / 30)
  for (const off of [-1, 0, 1]) assert.equal(findTotpStep(secret, toTotpCode(secret, step + off), now), step + off)
  for (const off of [-2, 2, 100]) assert.equal(findTotpStep(secret, toTotpCode(secret, step + off), now), undefined)
  for (const wrong of ['', '12345', '1234567', '000000', '١٢٣٤٥٦', 'äöüäöü'])
    assert.equal(findTotpStep(secret, wrong, now), undefined)
})

test('secrets are written as apps read them: the vectors of RFC 4648, without padding', () => {
  const vectors = {
    '': '',
    f: 'MY',
    fo: 'MZXQ',
    foo: 'MZXW6',
    foob: 'MZXW6YQ',
    fooba: 'MZXW6YTB',
    foobar: 'MZXW6YTBOI',
  }
  for (const [text, expected] of Object.entries(vectors)) assert.equal(toBase32(Buffer.from(text)), expected, text)
  const uri = new URL(toTotpUri(secret, 'ada+x@example.com'))
  assert.equal(uri.protocol, 'otpauth:')
  assert.equal(decodeURIComponent(uri.pathname), '/Assay:ada+x@example.com')
  assert.equal(uri.searchParams.get('secret'), 'GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ')
})
