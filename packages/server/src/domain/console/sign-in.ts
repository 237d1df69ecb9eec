import { createHmac, hash, randomBytes } from 'node:crypto'
import { v7 as newId } from 'uuid'
import type { AuditLog } from '../ports/audit-log.ts'
import type { Clock } from '../ports/clock.ts'
import type { Member, MemberStore } from '../ports/member-store.ts'
import { Problem } from '../problem.ts'
import { findTotpStep, getDecoyHash, isPasswordCorrect } from './credentials.ts'

type Deps = { members: MemberStore; audit: AuditLog; clock: Clock }
/** The address and the browser of a request, for the audit log and the list of sessions. */
export type Origin = { address: string; agent: string }
/** A member with an open session. */
export type Visitor = { sessionId: string; member: Member; csrfToken: string }
/** The token of a new session, or `code-needed` when the password must come with a code. */
export type SignInOutcome = { token: string } | 'code-needed'
type Credentials = { email: string; password: string; code?: string | undefined }

const hourMs = 3_600_000
const idleMs = 12 * hourMs
const lifetimeMs = 7 * 24 * hourMs
const attemptLimits = { firstPauseMs: 5000, longestPauseMs: 15 * 60_000, memoryMs: hourMs }
/** Failures that cause no pause, per email address and per IP address, which many people may share. */
const freeFailures = { email: 5, address: 50 }

/** Opens sessions by password and, for members with an authenticator app, a code. Only the browser has the token. */
export function makeSignIn(deps: Deps) {
  const { members, audit, clock } = deps

  return {
    async signIn(credentials: Credentials, origin: Origin): Promise<SignInOutcome> {
      const subjects = toSubjects(credentials.email, origin)
      await countAttempt(subjects)
      const member = await members.findByEmail(credentials.email)
      const isCorrect = await isPasswordCorrect(credentials.password, member?.passwordHash ?? (await getDecoyHash()))
      if (member === undefined || !isCorrect) return refuse(credentials, origin)
      if (member.totpConfirmedAt !== null) {
        if (credentials.code === undefined) {
          await members.uncountAttempt(subjects.email)
          await members.uncountAttempt(subjects.address)
          return 'code-needed'
        }
        if (!(await acceptsCode(member, credentials.code))) return refuse(credentials, origin)
      }
      await members.forgetFailures(subjects.email)
      await members.uncountAttempt(subjects.address)
      await audit.note({ actor: member.email, action: 'session.open', accountId: member.accountId, ...origin })
      return { token: await openSession(member, origin) }
    },

    openSession,

    async findVisitor(token: string): Promise<Visitor | undefined> {
      const now = clock.now()
      const session = await members.findSession(toDigest(token), now, new Date(now.getTime() - idleMs))
      return session && { sessionId: session.id, member: session.member, csrfToken: toCsrfToken(token) }
    },
  }

  async function openSession(member: Pick<Member, 'id'>, origin: Origin): Promise<string> {
    const token = newToken()
    const now = clock.now()
    await members.openSession({
      id: newId(),
      digest: toDigest(token),
      memberId: member.id,
      createdAt: now,
      lastSeenAt: now,
      expiresAt: new Date(now.getTime() + lifetimeMs),
      address: origin.address,
      agent: origin.agent.slice(0, 300),
    })
    return token
  }

  async function acceptsCode(member: Member, code: string): Promise<boolean> {
    const step = member.totpSecret === null ? undefined : findTotpStep(member.totpSecret, code, clock.now())
    return step !== undefined && members.takeTotpStep(member.id, step)
  }

  async function refuse(credentials: Credentials, origin: Origin): Promise<never> {
    await audit.note({ actor: credentials.email.slice(0, 254), action: 'session.refused', address: origin.address })
    throw new Problem({ kind: 'signed-out', detail: 'Wrong email address, password or code.' })
  }

  /** Counts the attempt before the password is checked. During a pause even the right password is refused. */
  async function countAttempt(subjects: ReturnType<typeof toSubjects>) {
    const now = clock.now()
    for (const kind of ['email', 'address'] as const) {
      const refused = await members.countAttempt(subjects[kind], now, {
        ...attemptLimits,
        freeFailures: freeFailures[kind],
      })
      if (refused === undefined) continue
      if (kind === 'address') await members.uncountAttempt(subjects.email)
      throw new Problem({ kind: 'rate-limited', retryAfterSeconds: Math.ceil(refused.waitMs / 1000) })
    }
  }
}

export type SignIn = ReturnType<typeof makeSignIn>

export const newToken = () => randomBytes(32).toString('base64url')
export const toDigest = (token: string) => hash('sha256', token, 'hex')

/** Derives the CSRF token from the session token, so that a page of another site can neither read nor compute it. */
const toCsrfToken = (token: string) => createHmac('sha256', token).update('csrf').digest('base64url')

const toSubjects = (email: string, { address }: Origin) => ({
  email: `email:${email.toLowerCase()}`,
  address: `address:${address}`,
})
