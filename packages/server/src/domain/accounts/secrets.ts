import { hash, randomBytes, randomFillSync, randomInt } from 'node:crypto'
import { crc32 } from 'node:zlib'

const alphabet = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'
const keyStart = 'assay_'
const testKeyStart = 'assay_test_'

/**
 * A new key has 190 random bits and a checksum, by which secret scanners can recognise a leaked key without asking the
 * database.
 */
export function newApiKey({ isTest = false } = {}): string {
  const random = Array.from({ length: 32 }, () => alphabet[randomInt(alphabet.length)]).join('')
  return `${isTest ? testKeyStart : keyStart}${random}${toCheckDigits(random)}`
}

/** The SHA-256 of a key in hex, which alone is stored. A slow hash would cost 78 ms and adds nothing at 190 bits. */
export const toKeyDigest = (key: string): string => hash('sha256', key, 'hex')

/** The beginning of a key, shown so that people can tell their keys apart. At most a third of a short key. */
export function toKeyPrefix(key: string): string {
  const maxLength = key.startsWith(testKeyStart) ? 16 : 12
  return key.slice(0, Math.min(maxLength, Math.floor(key.length / 3)))
}

/** A secret in the form of Standard Webhooks, so that their libraries accept it as it is. */
export const newWebhookSecret = (): string => `whsec_${randomBytes(32).toString('base64')}`

function toCheckDigits(text: string): string {
  let remainder = crc32(text)
  let digits = ''
  for (let i = 0; i < 6; i++) {
    digits = alphabet[remainder % alphabet.length] + digits
    remainder = Math.floor(remainder / alphabet.length)
  }
  return digits
}

const randomPool = Buffer.allocUnsafeSlow(16 * 1024)
let usedBytes = randomPool.length

/** Random bytes for keys, nonces and ids. They are drawn in bulk, because a system call for each use costs more. */
export function drawRandom(bytes: number): Buffer {
  if (usedBytes + bytes > randomPool.length) {
    randomFillSync(randomPool)
    usedBytes = 0
  }
  const drawn = Buffer.from(randomPool.subarray(usedBytes, usedBytes + bytes))
  randomPool.fill(0, usedBytes, usedBytes + bytes)
  usedBytes += bytes
  return drawn
}
