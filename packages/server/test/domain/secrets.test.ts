import assert from 'node:assert/strict'
import { test } from 'node:test'
import { crc32 } from 'node:zlib'
import { drawRandom, newApiKey, newWebhookSecret, toKeyDigest, toKeyPrefix } from '../../src/domain/accounts/keys.ts'

test('keys are 190 random bits behind a prefix, and never repeat', () => {
  const keys = new Set(Array.from({ length: 1000 }, newApiKey))
  assert.equal(keys.size, 1000)
  for (const key of keys) assert.match(key, /^assay_[0-9A-Za-z]{38}$/)
})

test('the last six characters of a key are the CRC-32 of its random part in base 62', () => {
  const alphabet = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'
  for (const key of Array.from({ length: 50 }, newApiKey)) {
    const value = [...key.slice(-6)].reduce((sum, digit) => sum * 62 + alphabet.indexOf(digit), 0)
    assert.equal(value, crc32(key.slice('assay_'.length, -6)))
  }
})

test('what is shown of a key is never more than a third of it', () => {
  assert.equal(toKeyPrefix(newApiKey()).length, 12)
  assert.equal(toKeyPrefix('12345678').length, 2)
})

test('a digest is SHA-256 and differs with one character', () => {
  assert.equal(toKeyDigest('abc'), 'ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad')
  assert.notEqual(toKeyDigest('assay_a'), toKeyDigest('assay_b'))
})

test('webhook secrets have the form of Standard Webhooks', () => {
  assert.match(newWebhookSecret(), /^whsec_[A-Za-z0-9+/]{43}=$/)
})

test('random bytes are never given out twice, also across the end of what was drawn', () => {
  const drawn = Array.from({ length: 3000 }, (_, n) => drawRandom(n % 2 === 0 ? 32 : 12))
  assert.equal(new Set(drawn.map((bytes) => bytes.toString('hex'))).size, drawn.length)
  for (const bytes of drawn) assert(bytes.some((byte) => byte !== 0))
  const [first, second] = [drawRandom(32), drawRandom(32)]
  const before = first.toString('hex')
  second.fill(0)
  for (let n = 0; n < 1000; n++) drawRandom(32)
  assert.equal(first.toString('hex'), before)
})
