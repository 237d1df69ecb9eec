import { hash } from 'node:crypto'
import { NIL as nilId } from 'uuid'
import type { AuditLog } from '../ports/audit-log.ts'
import type { Clock } from '../ports/clock.ts'
import type { Member, MemberStore } from '../ports/member-store.ts'
import { Problem } from '../problem.ts'
import { findTotpStep, isTotpCode, type Passwords, toRecoveryDigest } from './credentials.ts'
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

export const toDigest = (token: string) => hash('sha256', token, 'hex')
