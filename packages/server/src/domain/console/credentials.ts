import { type Argon2Parameters, createHmac, hash, randomBytes, timingSafeEqual } from 'node:crypto'
import { Problem } from '../problem.ts'

/** Derives an argon2id tag in a queue that is separate from scans; undefined when the queue is full. */
export type Derive = (input: Argon2Parameters, options: { isUrgent: boolean }) => Promise<Buffer> | undefined

/** The cost that OWASP recommends for argon2id: 19 MiB and two passes, about 25 ms. */
const cost = { parallelism: 1, tagLength: 32, memory: 19_456, passes: 2 }
/** Seconds in Retry-After while the queue is full, roughly the time in which it drains. */
const busySeconds = 2

/** Hashes and checks passwords. Urgent work, of a person who is known, is not delayed by the guesses of others. */
export function makePasswords({ derive }: { derive: Derive }) {
  let decoy: Promise<string> | undefined

  return {
    hash: hashPassword,
    isCorrect,
    /**
     * A hash to compare with when there is no such member, so that the response time does not tell which addresses
     * exist.
     */
    getDecoyHash(): Promise<string> {
      decoy ??= hashPassword(randomBytes(16).toString('hex')).catch((error) => {
        decoy = undefined
        throw error
      })
      return decoy
    },
  }

  /** Hashes a password into the usual form, `$argon2id$v=19$m=…,t=…,p=…$salt$hash`. */
  async function hashPassword(password: string): Promise<string> {
    const nonce = randomBytes(16)
    const tag = await run({ ...cost, message: password, nonce }, true)
    const { memory, passes, parallelism } = cost
    return `$argon2id$v=19$m=${memory},t=${passes},p=${parallelism}$${toText(nonce)}$${toText(tag)}`
  }

  async function isCorrect(password: string, stored: string, { isUrgent = false } = {}): Promise<boolean> {
    const match = /^\$argon2id\$v=19\$m=(\d+),t=(\d+),p=(\d+)\$([\w+/]+)\$([\w+/]+)$/.exec(stored)
    if (match === null) return false
    const [, memory, passes, parallelism, salt = '', tag = ''] = match
    const expected = Buffer.from(tag, 'base64')
    const input = {
      memory: Number(memory),
      passes: Number(passes),
      parallelism: Number(parallelism),
      message: password,
      nonce: Buffer.from(salt, 'base64'),
      tagLength: expected.length,
    }
    return timingSafeEqual(await run(input, isUrgent), expected)
  }

  async function run(input: Argon2Parameters, isUrgent: boolean): Promise<Buffer> {
    const tag = await derive(input, { isUrgent })
    if (tag !== undefined) return tag
    const detail = 'Too many people are signing in at the moment.'
    throw new Problem({ kind: 'overloaded', retryAfterSeconds: busySeconds, detail })
  }
}

export type Passwords = ReturnType<typeof makePasswords>

const toText = (bytes: Buffer) => bytes.toString('base64').replaceAll('=', '')

const stepSeconds = 30
const alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZ234567'

/** The code of an authenticator app at a step (RFC 6238 with SHA-1, six digits and 30 s, which all apps understand). */
export function toTotpCode(secret: Buffer, step: number): string {
  const counter = Buffer.alloc(8)
  counter.writeBigUInt64BE(BigInt(step))
  const mac = createHmac('sha1', secret).update(counter).digest()
  const at = (mac.at(-1) ?? 0) & 15
  return String((mac.readUInt32BE(at) & 0x7fffffff) % 1_000_000).padStart(6, '0')
}

/** Finds the step of the code: the current one, or the one before or after, for clocks that differ. */
export function findTotpStep(secret: Buffer, code: string, now: Date): number | undefined {
  const current = Math.floor(now.getTime() / 1000 / stepSeconds)
  return [current, current - 1, current + 1].find((step) => isSameSecret(toTotpCode(secret, step), code))
}

/** The URI that the app reads from a QR code or that people type. */
export function toTotpUri(secret: Buffer, email: string): string {
  const query = new URLSearchParams({ secret: toBase32(secret), issuer: 'Assay' })
  return `otpauth://totp/Assay:${encodeURIComponent(email)}?${query}`
}

export function toBase32(bytes: Buffer): string {
  let text = ''
  let bits = 0
  let value = 0
  for (const byte of bytes) {
    value = ((value << 8) | byte) & 0xffff
    for (bits += 8; bits >= 5; bits -= 5) text += alphabet[(value >> (bits - 5)) & 31]
  }
  return bits === 0 ? text : text + alphabet[(value << (5 - bits)) & 31]
}

/** Compares secrets in a time that does not tell how many characters are right. Only the length may show. */
export function isSameSecret(expected: string, given: string): boolean {
  const [a, b] = [Buffer.from(expected), Buffer.from(given)]
  return a.length === b.length && timingSafeEqual(a, b)
}

const recoveryCodes = 10

/** New recovery codes, of 80 random bits each, with which a person signs in without the authenticator app. */
export const newRecoveryCodes = (): string[] =>
  Array.from({ length: recoveryCodes }, () =>
    toBase32(randomBytes(10))
      .toLowerCase()
      .replaceAll(/.{4}(?=.)/g, '$&-'),
  )

/** Only this digest of a recovery code is stored. People may type the code in capitals and without hyphens. */
export const toRecoveryDigest = (code: string): string =>
  hash('sha256', code.toLowerCase().replaceAll(/[\s-]/g, ''), 'hex')

export const isTotpCode = (code: string): boolean => /^\d{6}$/.test(code)
