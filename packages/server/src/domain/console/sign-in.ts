import { createHmac, randomBytes } from 'node:crypto'
import { v7 as newId } from 'uuid'
import type { Member, MemberStore, Membership } from '../ports/member-store.ts'
import type { AuditLog } from '../ports/operations.ts'
import { Problem } from '../problem.ts'
import { type Authentication, type Credentials, type Origin, requireActive, toDigest } from './authentication.ts'

type Deps = { members: MemberStore; authentication: Authentication; audit: AuditLog }
/** A member with an open session, and the account that the session works in. */
export type Visitor = {
  sessionId: string
  member: Member
  membership: Membership | undefined
  csrfToken: string
}
/** Tokens of a new session and of its browser. */
export type OpenedSession = { token: string; device: string }
/** A new session, or `code-needed` when the password must come with a code. */
export type SignInOutcome = OpenedSession | 'code-needed'

const hourMs = 3_600_000
const idleMs = 12 * hourMs
const lifetimeMs = 7 * 24 * hourMs

/** Opens sessions by password and, for members with an authenticator app, a code. Only the browser has the token. */
export function makeSignIn({ members, authentication, audit }: Deps) {
  return {
    async signIn(credentials: Credentials, origin: Origin): Promise<SignInOutcome> {
      const member = await authentication.authenticate(credentials, origin)
      if (member === 'code-needed') return member
      const [membership] = await members.listMemberships(member.id)
      const accountId = membership?.accountId ?? null
      return audit.atomically(async () => {
        const opened = await openSession(member, accountId, origin)
        await audit.note({ actor: member.email, action: 'session.open', accountId, address: origin.address })
        return opened
      })
    },

    openSession,

    /** The sessions of a member that can still be used. */
    listSessions,

    /**
     * Replaces a password that was checked, ends all sessions and forgets the other browsers. The new session ends when
     * the one that it replaces would have: otherwise a password would prolong a session where single sign-on is required.
     */
    async changePassword(
      member: Member,
      passwordHash: string,
      session: { id: string; accountId: string | null },
      origin: Origin,
    ) {
      const replaced = (await listSessions(member.id)).find(({ id }) => id === session.id)
      if (replaced === undefined) throw newOutdated()
      if (!(await members.setPassword(member.id, { from: member.passwordHash, to: passwordHash }))) throw newOutdated()
      return openSession({ ...member, passwordHash }, session.accountId, origin, replaced)
    },

    async findVisitor(token: string): Promise<Visitor | undefined> {
      const session = await members.findSession(toDigest(token), idleMs)
      if (session === undefined) return undefined
      const { id, member, membership } = session
      return { sessionId: id, member, membership, csrfToken: toCsrfToken(token) }
    },
  }

  function listSessions(memberId: string) {
    return members.listSessions(memberId, idleMs)
  }

  /** Opens a session if the password of the member is still the one that was checked. */
  async function openSession(
    member: Member,
    accountId: string | null,
    origin: Origin,
    { isSso = false, expiresAt = null }: { isSso?: boolean; expiresAt?: Date | null } = {},
  ): Promise<OpenedSession> {
    requireActive(member)
    const token = newToken()
    const device = origin.device ?? newToken()
    const isOpened = await members.openSession({
      id: newId(),
      digest: toDigest(token),
      deviceDigest: toDigest(device),
      memberId: member.id,
      passwordHash: member.passwordHash,
      accountId,
      lifetimeMs,
      address: origin.address,
      agent: origin.agent.slice(0, 300),
      isSso,
      expiresAt,
    })
    if (!isOpened) throw newOutdated()
    return { token, device }
  }
}

export type SignIn = ReturnType<typeof makeSignIn>

const newOutdated = () =>
  new Problem({ kind: 'signed-out', detail: 'Your password or your access was changed meanwhile. Sign in again.' })

export const newToken = () => randomBytes(32).toString('base64url')

/** Derives the CSRF token from the session token, so that a page of another site can neither read nor compute it. */
const toCsrfToken = (token: string) => createHmac('sha256', token).update('csrf').digest('base64url')
