import type { FastifyReply, FastifyRequest } from 'fastify'
import { requireUncommon } from '../domain/console/accept-link.ts'
import type { Authentication } from '../domain/console/authentication.ts'
import type { Passwords } from '../domain/console/credentials.ts'
import type { Invitations } from '../domain/console/invitations.ts'
import type { SignIn, SignInOutcome } from '../domain/console/sign-in.ts'
import type { SingleSignOn } from '../domain/console/single-sign-on.ts'
import type { Member, MemberStore, Membership } from '../domain/ports/member-store.ts'
import { Problem } from '../domain/problem.ts'
import { getId, getMember, type Handlers, requireFound } from './call.ts'
import { clearSessionCookie, setSessionCookies } from './cookies.ts'

export type SessionDeps = {
  members: MemberStore
  passwords: Passwords
  authentication: Authentication
  signIn: SignIn
  invitations: Invitations
  region: string
  version: string
  isTestMode: boolean
  /** Undefined without an issuer. */
  sso: SingleSignOn | undefined
}

/** Handlers for signing in and out, and for the password of a member. */
export function makeSessionHandlers(deps: SessionDeps) {
  const { members, passwords, authentication, signIn, invitations, region, version } = deps

  return {
    async findLink({ body }) {
      const link = await invitations.getLink(body.token)
      const { purpose, role, accountName, email } = link
      return { purpose, role, account_name: accountName, email, is_member: await invitations.isForMember(link) }
    },
    async acceptLink({ body, origin, request, reply }) {
      const acceptsPasswords = deps.sso?.isRequired !== true
      return enter(await invitations.accept(body.token, body, origin, { acceptsPasswords }), request, reply)
    },
    async signIn({ body, origin, request, reply }) {
      if (deps.sso?.isRequired === true) throw newPasswordRefused()
      return enter(await signIn.signIn(body, origin), request, reply)
    },
    async getSession({ who }) {
      const member = await getMember(members, who)
      const memberships = await members.listMemberships(member.id)
      const own = memberships.find(({ accountId }) => accountId === who.accountId)
      const service = { csrf_token: who.csrfToken ?? '', region, version, test_mode: deps.isTestMode }
      const sso = await deps.sso?.describe(member.id, who.sessionId ?? '')
      const signOutUrl = sso?.isSsoSession === true ? deps.sso?.findSignOutUrl() : undefined
      const session = toSession(member, memberships, own, sso?.isLinked === true)
      return { ...session, ...service, sso_sign_out_url: signOutUrl ?? null }
    },
    async chooseAccount({ who, body, audit }) {
      const memberships = await members.listMemberships((await getMember(members, who)).id)
      const chosen = memberships.find(({ accountId }) => accountId === body.account_id)
      const { accountId } = requireFound(chosen, 'account')
      await members.setSessionAccount(who.sessionId ?? '', accountId)
      await audit('session.choose-account', accountId, { accountId })
    },
    async signOut({ who, audit, request, reply }) {
      if (who.sessionId !== null) await members.closeSession(who.sessionId)
      clearSessionCookie(request, reply)
      await audit('session.close')
    },
    async listSessions({ who }) {
      const sessions = await signIn.listSessions((await getMember(members, who)).id)
      return sessions.map(({ id, createdAt, lastSeenAt, address, agent }) => ({
        id,
        created_at: createdAt.toISOString(),
        last_seen_at: lastSeenAt.toISOString(),
        address,
        agent,
        is_this: id === who.sessionId,
      }))
    },
    async endSession(call) {
      const { who, audit, request, reply } = call
      const sessions = await signIn.listSessions((await getMember(members, who)).id)
      const wanted = getId(call, 'session')
      const { id, address } = requireFound(
        sessions.find((session) => session.id === wanted),
        'session',
      )
      await members.closeSession(id)
      if (id === who.sessionId) clearSessionCookie(request, reply)
      await audit('session.close', undefined, { detail: `the session at ${address}` })
    },
    async signOutEverywhere({ who, audit, request, reply }) {
      await members.closeSessions((await getMember(members, who)).id)
      clearSessionCookie(request, reply)
      await audit('session.close-all')
    },
    async changePassword({ who, body, origin, audit, atomically, request, reply }) {
      const member = await getMember(members, who)
      await authentication.confirmPassword(member, who.sessionId ?? '', body.current, 'current')
      requireUncommon({ ...member, password: body.next }, 'next')
      const passwordHash = await passwords.hash(body.next)
      const session = await atomically(async () => {
        const replaced = { id: who.sessionId ?? '', accountId: who.accountId }
        const opened = await signIn.changePassword(member, passwordHash, replaced, origin)
        await audit('password.change')
        return opened
      })
      setSessionCookies(request, reply, session)
    },
  } satisfies Partial<Handlers>
}

const newPasswordRefused = () =>
  new Problem({ kind: 'forbidden', detail: 'This service requires single sign-on. Sign in with it instead.' })

function enter(outcome: SignInOutcome, request: FastifyRequest, reply: FastifyReply) {
  if (outcome === 'code-needed') return { state: outcome }
  setSessionCookies(request, reply, outcome)
  return { state: 'signed-in' as const }
}

/** The person, the account that the session works in, and all accounts of the person. */
function toSession(member: Member, memberships: Membership[], own: Membership | undefined, isLinked: boolean) {
  return {
    member: {
      id: member.id,
      name: member.name,
      email: member.email,
      role: member.isOperator ? ('operator' as const) : (own?.role ?? 'member'),
      has_totp: member.totpConfirmedAt !== null,
      recovery_codes_left: member.recoveryCodesLeft,
      has_sso: isLinked,
    },
    account:
      own === undefined
        ? null
        : {
            id: own.accountId,
            name: own.accountName,
            role: own.role,
            suspended_at: own.accountSuspendedAt?.toISOString() ?? null,
            suspended_reason: own.suspendedReason,
          },
    accounts: memberships.map(({ accountId: id, accountName: name, role }) => ({ id, name, role })),
  }
}
