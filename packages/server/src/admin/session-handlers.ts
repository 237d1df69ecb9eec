import { randomBytes } from 'node:crypto'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { findTotpStep, hashPassword, isPasswordCorrect, toBase32, toTotpUri } from '../domain/console/credentials.ts'
import type { Invitations } from '../domain/console/invitations.ts'
import type { SignIn, SignInOutcome } from '../domain/console/sign-in.ts'
import type { Clock } from '../domain/ports/clock.ts'
import type { Member, MemberStore } from '../domain/ports/member-store.ts'
import { Problem } from '../domain/problem.ts'
import type { Handlers, Who } from './call.ts'
import { clearSessionCookie, setSessionCookie } from './guard.ts'

export type SessionDeps = {
  members: MemberStore
  signIn: SignIn
  invitations: Invitations
  clock: Clock
  region: string
  version: string
  isTestMode: boolean
}

/** Handlers for signing in and out, and for the password and authenticator app of a member. */
export function makeSessionHandlers(deps: SessionDeps) {
  const { members, signIn, invitations, clock, region, version } = deps

  return {
    async findLink({ body }) {
      const { purpose, role, accountName, email } = await invitations.getLink(body.token)
      return { purpose, role, account_name: accountName, email }
    },
    async acceptLink({ body, origin, request, reply }) {
      return enter(await invitations.accept(body.token, body, origin), request, reply)
    },
    async signIn({ body, origin, request, reply }) {
      return enter(await signIn.signIn(body, origin), request, reply)
    },
    async getSession({ who }) {
      const member = await getMember(who)
      return {
        member: {
          id: member.id,
          name: member.name,
          email: member.email,
          role: member.role,
          has_totp: member.totpConfirmedAt !== null,
        },
        account: member.accountId === null ? null : { id: member.accountId, name: member.accountName ?? '' },
        csrf_token: who.csrfToken ?? '',
        region,
        version,
        test_mode: deps.isTestMode,
      }
    },
    async signOut({ who, audit, request, reply }) {
      if (who.sessionId !== null) await members.closeSession(who.sessionId)
      clearSessionCookie(request, reply)
      await audit('session.close')
    },
    async listSessions({ who }) {
      const sessions = await members.listSessions((await getMember(who)).id)
      return sessions.map(({ id, createdAt, lastSeenAt, address, agent }) => ({
        id,
        created_at: createdAt.toISOString(),
        last_seen_at: lastSeenAt.toISOString(),
        address,
        agent,
        is_this: id === who.sessionId,
      }))
    },
    async signOutEverywhere({ who, audit, request, reply }) {
      await members.closeSessions((await getMember(who)).id)
      clearSessionCookie(request, reply)
      await audit('session.close-all')
    },
    async changePassword({ who, body, audit }) {
      const member = await getMember(who)
      await requirePassword(member, body.current, 'current')
      await members.setPassword(member.id, await hashPassword(body.next))
      await members.closeSessions(member.id, who.sessionId ?? undefined)
      await audit('password.change')
    },
    async startTotp({ who }) {
      const member = await getMember(who)
      if (member.totpConfirmedAt !== null) {
        throw new Problem({ kind: 'conflict', detail: 'An authenticator app is already set up. Remove it first.' })
      }
      const secret = randomBytes(20)
      await members.setTotp(member.id, secret, null)
      return { secret: toBase32(secret), uri: toTotpUri(secret, member.email) }
    },
    async confirmTotp({ who, body, audit }) {
      const { id, totpSecret } = await getMember(who)
      const step = totpSecret === null ? undefined : findTotpStep(totpSecret, body.code, clock.now())
      if (step === undefined) throw new Problem({ kind: 'validation', errors: { code: ['Wrong code.'] } })
      await members.setTotp(id, totpSecret, clock.now())
      await members.takeTotpStep(id, step)
      await audit('totp.confirm')
    },
    async removeTotp({ who, body, audit }) {
      const member = await getMember(who)
      await requirePassword(member, body.password, 'password')
      await members.setTotp(member.id, null, null)
      await audit('totp.remove')
    },
  } satisfies Partial<Handlers>

  /** Returns the member behind a session. The operator token belongs to no member. */
  async function getMember({ memberId }: Who): Promise<Member> {
    const member = memberId === null ? undefined : await members.findMember(memberId)
    if (member === undefined) throw new Problem({ kind: 'forbidden', detail: 'This route requires a session.' })
    return member
  }
}

function enter(outcome: SignInOutcome, request: FastifyRequest, reply: FastifyReply) {
  if (outcome === 'code-needed') return { state: outcome }
  setSessionCookie(request, reply, outcome.token)
  return { state: 'signed-in' as const }
}

async function requirePassword(member: Member, given: string, field: string) {
  if (await isPasswordCorrect(given, member.passwordHash)) return
  throw new Problem({ kind: 'validation', errors: { [field]: ['Wrong password.'] } })
}
