import { randomBytes } from 'node:crypto'
import type { FastifyReply, FastifyRequest } from 'fastify'
import type { Clock } from '../domain/clock.ts'
import {
  type Authentication,
  findTotpStep,
  newRecoveryCodes,
  type Passwords,
  toBase32,
  toRecoveryDigest,
  toTotpUri,
} from '../domain/console/authentication.ts'
import { type Invitations, requireUncommon } from '../domain/console/invitations.ts'
import type { SignIn, SignInOutcome } from '../domain/console/sign-in.ts'
import type { SingleSignOn } from '../domain/console/single-sign-on.ts'
import type { Member, MemberStore, Membership } from '../domain/ports/member-store.ts'
import { Problem } from '../domain/problem.ts'
import {
  clearSessionCookie,
  clearSsoCookie,
  findSessionToken,
  findSsoToken,
  getId,
  getMember,
  type Handlers,
  requireFound,
  setSessionCookies,
  setSsoCookie,
} from './call.ts'

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
      return answerSignIn(await invitations.accept(body.token, body, origin, { acceptsPasswords }), request, reply)
    },
    async signIn({ body, origin, request, reply }) {
      if (deps.sso?.isRequired === true) throw newSsoRequired()
      return answerSignIn(await signIn.signIn(body, origin), request, reply)
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

const newSsoRequired = () =>
  new Problem({ kind: 'forbidden', detail: 'This service requires single sign-on. Sign in with it instead.' })

function answerSignIn(outcome: SignInOutcome, request: FastifyRequest, reply: FastifyReply) {
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

export type SsoDeps = {
  /** Undefined without an issuer. */
  sso: SingleSignOn | undefined
  members: MemberStore
  authentication: Authentication
  signIn: SignIn
}

/**
 * Handlers for single sign-on. The issuer sends the browser to a page of the console, and that page calls `finishSso`:
 * a navigation from another site would not carry the strict cookies.
 */
export function makeSsoHandlers({ sso, members, authentication, signIn }: SsoDeps) {
  return {
    async getSso() {
      if (sso === undefined) return { state: 'off', is_required: false }
      const fault = await sso.findLastFault()
      return { state: fault === undefined ? 'available' : 'unreachable', is_required: sso.isRequired }
    },
    async startSso({ request, reply }) {
      const { url, token } = await requireSso(sso).start(null)
      setSsoCookie(request, reply, token)
      return { url }
    },
    async finishSso({ body, origin, request, reply }) {
      const token = findSessionToken(request)
      const visit = token === undefined ? undefined : await signIn.findVisitor(token)
      clearSsoCookie(request, reply)
      const finished = await requireSso(sso).finish(body, findSsoToken(request), origin, visit)
      if (finished === 'linked') return { state: 'linked' }
      setSessionCookies(request, reply, finished)
      return { state: 'signed-in' }
    },
    /** Needs the password, so that a stolen session cannot add an identity of its own. */
    async linkSso({ who, body, request, reply }) {
      const member = await getMember(members, who)
      const sessionId = who.sessionId ?? ''
      const provider = requireSso(sso)
      await authentication.confirmPassword(member, sessionId, body.password, 'password')
      const { url, token } = await provider.start(sessionId)
      setSsoCookie(request, reply, token)
      return { url }
    },
    /** Needs the password, so that a person who has none does not lock themselves out. */
    async unlinkSso({ who, body, audit, atomically }) {
      const member = await getMember(members, who)
      const provider = requireSso(sso)
      await authentication.confirmPassword(member, who.sessionId ?? '', body.password, 'password')
      await atomically(async () => {
        const removal = await provider.unlink(member.id)
        if (removal === 'last') throw newLastRole()
        if (removal === 'done') await audit('sso.unlink', member.email)
      })
    },
  } satisfies Partial<Handlers>
}

const newLastRole = () =>
  new Problem({
    kind: 'conflict',
    detail:
      'Single sign-on makes you an operator, or the owner of an account, and nobody else can sign in as one. Invite ' +
      'another operator or owner first.',
  })

function requireSso(sso: SingleSignOn | undefined): SingleSignOn {
  if (sso === undefined) throw new Problem({ kind: 'not-found', detail: 'Single sign-on is not set up.' })
  return sso
}

export type TotpDeps = { members: MemberStore; authentication: Authentication; clock: Clock }

/** Handlers for the authenticator app of a member and its recovery codes. */
export function makeTotpHandlers({ members, authentication, clock }: TotpDeps) {
  return {
    /** Needs the password, so that a stolen session cannot add an app of its own and lock the person out. */
    async startTotp({ who, body, audit, atomically }) {
      const member = await getMember(members, who)
      if (member.totpConfirmedAt !== null) throw newTotpConflict()
      await authentication.confirmPassword(member, who.sessionId ?? '', body.password, 'password')
      const secret = randomBytes(20)
      await atomically(async () => {
        if (!(await members.startTotp(member.id, secret))) throw newTotpConflict()
        await audit('totp.start')
      })
      return { secret: toBase32(secret), uri: toTotpUri(secret, member.email) }
    },
    async confirmTotp({ who, body, audit }) {
      const { id, totpConfirmedAt } = await getMember(members, who)
      const secret = await members.findTotpSecret(id)
      if (totpConfirmedAt !== null) throw newTotpConflict()
      const step = secret === null ? undefined : findTotpStep(secret, body.code, clock.now())
      if (secret === null || step === undefined) {
        throw new Problem({ kind: 'validation', errors: { code: ['Wrong code.'] } })
      }
      const codes = newRecoveryCodes()
      const app = { secret, step, recoveryDigests: codes.map(toRecoveryDigest) }
      if (!(await members.confirmTotp(id, app))) throw newTotpConflict()
      await audit('totp.confirm')
      return { recovery_codes: codes }
    },
    async renewRecoveryCodes({ who, body, audit, atomically }) {
      const member = await getMember(members, who)
      if (member.totpConfirmedAt === null) {
        throw new Problem({
          kind: 'conflict',
          detail: 'Recovery codes belong to an authenticator app. Set it up first.',
        })
      }
      await authentication.confirmPassword(member, who.sessionId ?? '', body.password, 'password')
      const codes = newRecoveryCodes()
      await atomically(async () => {
        await members.setRecoveryCodes(member.id, codes.map(toRecoveryDigest))
        await audit('recovery-codes.renew')
      })
      return { recovery_codes: codes }
    },
    async removeTotp({ who, body, audit, atomically }) {
      const member = await getMember(members, who)
      await authentication.confirmPassword(member, who.sessionId ?? '', body.password, 'password')
      await atomically(async () => {
        await members.removeTotp(member.id)
        await audit('totp.remove')
      })
    },
  } satisfies Partial<Handlers>
}

const newTotpConflict = () =>
  new Problem({ kind: 'conflict', detail: 'An authenticator app is already set up. Remove it first.' })
