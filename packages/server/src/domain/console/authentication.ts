import { type Argon2Parameters, createHmac, hash, randomBytes, timingSafeEqual } from 'node:crypto'
import { v7 as newId, NIL as nilId } from 'uuid'
import { toKeyDigest, unrestricted } from '../accounts/keys.ts'
import type { Clock } from '../clock.ts'
import type { ConsoleKeyStore } from '../ports/account-store.ts'
import type { Member, MemberStore } from '../ports/member-store.ts'
import type { AuditLog } from '../ports/operations.ts'
import { Problem } from '../problem.ts'
import { type Throttle, toDeviceSubject, toSessionSubject, toStranger } from './throttle.ts'

type Deps = { members: MemberStore; passwords: Passwords; throttle: Throttle; audit: AuditLog; clock: Clock }
/** The address and the browser of a request, for the audit log and the list of sessions. */
export type Origin = {
  address: string
  agent: string
  /** Token that a browser got when a person signed in with it. */
  device?: string | undefined
}
export type Credentials = { email: string; password: string; code?: string | undefined }

/** Checks passwords and codes, and slows down those who guess them. */
export function makeAuthentication({ members, passwords, throttle, audit, clock }: Deps) {
  return {
    /**
     * Returns the member with this email address, password and code, or `code-needed` if only the code is missing.
     * Guesses of others do not delay a browser that signed in before.
     */
    async authenticate(credentials: Credentials, origin: Origin): Promise<Member | 'code-needed'> {
      const { email, password, code } = credentials
      const member = await members.findByEmail(email)
      const isUrgent = await isKnownDevice(member, origin)
      const attempt = await throttle.begin(
        member !== undefined && isUrgent
          ? [toDeviceSubject(toDigest(origin.device ?? ''), member.id)]
          : toStranger(email, origin.address),
      )
      const isCorrect = await checkPassword(member, password, isUrgent).catch(giveBack(attempt))
      if (member === undefined || !isCorrect) return refuse(credentials, origin)
      if (member.totpConfirmedAt !== null) {
        if (code === undefined) {
          await attempt.withdraw()
          return 'code-needed'
        }
        const isAccepted = await acceptsCode(member, code, origin).catch(giveBack(attempt))
        if (!isAccepted) return refuse(credentials, origin)
      }
      await attempt.succeed()
      requireActive(member)
      return member
    },

    /** Checks the password of a signed-in member once more; a stolen session must not serve to guess it. */
    async confirmPassword(member: Member, sessionId: string, given: string, field: string) {
      const attempt = await throttle.begin([toSessionSubject(sessionId)])
      const isCorrect = await checkPassword(member, given, true).catch(giveBack(attempt))
      if (!isCorrect) throw new Problem({ kind: 'validation', errors: { [field]: ['Wrong password.'] } })
      await attempt.succeed()
    },
  }

  async function checkPassword(member: Member | undefined, password: string, isUrgent: boolean): Promise<boolean> {
    return passwords.isCorrect(password, member?.passwordHash ?? (await passwords.getDecoyHash()), { isUrgent })
  }

  /** Asks the database also when there is no such member, so that the response time does not tell. */
  async function isKnownDevice(member: Member | undefined, { device }: Origin): Promise<boolean> {
    return device !== undefined && members.isKnownDevice(member?.id ?? nilId, toDigest(device))
  }

  async function acceptsCode(member: Member, code: string, { address }: Origin): Promise<boolean> {
    if (isTotpCode(code)) {
      const secret = await members.findTotpSecret(member.id)
      const step = secret === null ? undefined : findTotpStep(secret, code, clock.now())
      return step !== undefined && members.takeTotpStep(member.id, step)
    }
    return audit.atomically(async () => {
      const isTaken = await members.takeRecoveryCode(member.id, toRecoveryDigest(code))
      if (isTaken) await audit.note({ actor: member.email, action: 'recovery-code.use', address })
      return isTaken
    })
  }

  async function refuse(credentials: Credentials, origin: Origin): Promise<never> {
    await audit.note({ actor: credentials.email.slice(0, 254), action: 'session.refused', address: origin.address })
    throw new Problem({ kind: 'signed-out', detail: 'Wrong email address, password or code.' })
  }
}

export type Authentication = ReturnType<typeof makeAuthentication>

/** A password or code that was not checked, because the queue was full or the service failed, is not a wrong one. */
const giveBack = (attempt: { withdraw(): Promise<void> }) => async (error: unknown) => {
  await attempt.withdraw()
  throw error
}

export function requireActive({ suspendedAt }: Member) {
  if (suspendedAt === null) return
  throw new Problem({ kind: 'forbidden', detail: 'Your access is suspended. Ask an operator of this service.' })
}

/** The SHA-256 of a token in hex, which alone is stored. */
export const toDigest = (token: string) => hash('sha256', token, 'hex')

/** Compares secrets in a time that does not tell how many characters are right. Only the length may show. */
export function isSameSecret(expected: string, given: string): boolean {
  const [a, b] = [Buffer.from(expected), Buffer.from(given)]
  return a.length === b.length && timingSafeEqual(a, b)
}

/** Derives an argon2id tag in a queue that is separate from scans; undefined when the queue is full. */
export type Derive = (input: Argon2Parameters, options: { isUrgent: boolean }) => Promise<Buffer> | undefined

/** The cost that OWASP recommends for argon2id: 19 MiB and two passes, about 25 ms. */
const argon2Cost = { parallelism: 1, tagLength: 32, memory: 19_456, passes: 2 }
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
    const tag = await deriveTag({ ...argon2Cost, message: password, nonce }, true)
    const { memory, passes, parallelism } = argon2Cost
    return `$argon2id$v=19$m=${memory},t=${passes},p=${parallelism}$${toUnpaddedBase64(nonce)}$${toUnpaddedBase64(tag)}`
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
    return timingSafeEqual(await deriveTag(input, isUrgent), expected)
  }

  async function deriveTag(input: Argon2Parameters, isUrgent: boolean): Promise<Buffer> {
    const tag = await derive(input, { isUrgent })
    if (tag !== undefined) return tag
    const detail = 'Too many people are signing in at the moment.'
    throw new Problem({ kind: 'overloaded', retryAfterSeconds: busySeconds, detail })
  }
}

export type Passwords = ReturnType<typeof makePasswords>

const toUnpaddedBase64 = (bytes: Buffer) => bytes.toString('base64').replaceAll('=', '')

const totpStepSeconds = 30
const base32Alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZ234567'

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
  const current = Math.floor(now.getTime() / 1000 / totpStepSeconds)
  return [current, current - 1, current + 1].find((step) => isSameSecret(toTotpCode(secret, step), code))
}

const isTotpCode = (code: string): boolean => /^\d{6}$/.test(code)

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
    for (bits += 8; bits >= 5; bits -= 5) text += base32Alphabet[(value >> (bits - 5)) & 31]
  }
  return bits === 0 ? text : text + base32Alphabet[(value << (5 - bits)) & 31]
}

const recoveryCodeCount = 10

/** New recovery codes, of 80 random bits each, with which a person signs in without the authenticator app. */
export const newRecoveryCodes = (): string[] =>
  Array.from({ length: recoveryCodeCount }, () =>
    toBase32(randomBytes(10))
      .toLowerCase()
      .replaceAll(/.{4}(?=.)/g, '$&-'),
  )

/** Only this digest of a recovery code is stored. People may type the code in capitals and without hyphens. */
export const toRecoveryDigest = (code: string): string => toDigest(code.toLowerCase().replaceAll(/[\s-]/g, ''))

/** The name of the key for scans from the console, which have a rate window and a line in the usage of their own. */
export const consoleKeyName = 'console'
/** Marks the key of the console. Every other key has a prefix, whatever its name. */
export const consoleKeyPrefix = ''

/**
 * Creates the key of the console when it is first needed. No person has this key: only the digest of random bytes
 * exists.
 */
export function makeConsoleKeys({ keys, isTest }: { keys: ConsoleKeyStore; isTest: boolean }) {
  return {
    async getDigest(accountId: string): Promise<string> {
      const storedDigest = await keys.findConsoleDigest(accountId)
      if (storedDigest !== undefined) return storedDigest
      const digest = toKeyDigest(randomBytes(32).toString('hex'))
      await keys.createConsoleKey(accountId, {
        id: newId(),
        name: consoleKeyName,
        prefix: consoleKeyPrefix,
        digest,
        expiresAt: null,
        isTest,
        restrictions: unrestricted,
        createdBy: null,
      })
      return (await keys.findConsoleDigest(accountId)) ?? digest
    },
  }
}
