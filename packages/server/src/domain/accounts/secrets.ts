import { hash, randomBytes, randomInt } from 'node:crypto'
import { crc32 } from 'node:zlib'

const alphabet = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'
const keyStart = 'assay_'
const testKeyStart = 'assay_test_'

/** 190 random bits and a checksum, so that a leaked key can be told from a lookalike without asking the database. */
export function newApiKey({ isTest = false } = {}): string {
  const random = Array.from({ length: 32 }, () => alphabet[randomInt(alphabet.length)]).join('')
  return `${isTest ? testKeyStart : keyStart}${random}${toCheckDigits(random)}`
}

/** SHA-256 in hex. Only this is stored. A slow hash would cost 78 ms a request and buy nothing at 190 bits. */
export const toKeyDigest = (key: string): string => hash('sha256', key, 'hex')

/** What may be shown again, so that people can tell their keys apart. Never more than a third of a short one. */
export function toKeyPrefix(key: string): string {
  const most = key.startsWith(testKeyStart) ? 16 : 12
  return key.slice(0, Math.min(most, Math.floor(key.length / 3)))
}

/** In the form of Standard Webhooks, so that their libraries take it as it is. */
export const newWebhookSecret = (): string => `whsec_${randomBytes(32).toString('base64')}`

function toCheckDigits(text: string): string {
  let rest = crc32(text)
  let digits = ''
  for (let i = 0; i < 6; i++) {
    digits = alphabet[rest % alphabet.length] + digits
    rest = Math.floor(rest / alphabet.length)
  }
  return digits
}
