import { csrfHeader, mayUse, type Route } from '@assay/contract/admin'
import type { FastifyRequest } from 'fastify'
import { isSameSecret } from '../domain/console/credentials.ts'
import type { SignIn } from '../domain/console/sign-in.ts'
import { type Throttle, toTokenSubject } from '../domain/console/throttle.ts'
import { Problem } from '../domain/problem.ts'
import type { Who } from './call.ts'
import { findSessionToken } from './cookies.ts'

export type GuardDeps = { signIn: SignIn; throttle: Throttle; adminToken: string | undefined }

/** The caller of a route for anyone. */
const anonymous: Who = {
  actor: '',
  isOperator: false,
  accountId: null,
  accountRole: null,
  suspension: undefined,
  memberId: null,
  sessionId: null,
  csrfToken: null,
}

/** Identifies the caller, checks their access, and checks the CSRF token of changes. */
export function makeGuard({ signIn, throttle, adminToken }: GuardDeps) {
  return async (route: Pick<Route, 'access' | 'method' | 'servesSuspended'>, request: FastifyRequest): Promise<Who> => {
    if (route.access === 'anyone') return anonymous
    const who = await findWho(request)
    if (who === undefined) throw new Problem({ kind: 'signed-out', detail: 'You are not signed in.' })
    if (route.access === 'signed-in' && who.memberId === null) {
      throw new Problem({
        kind: 'forbidden',
        detail: 'This route requires a session; the admin token is not sufficient.',
      })
    }
    if (!mayUse(route.access, who)) throw new Problem({ kind: 'forbidden', detail: toReason(route.access, who) })
    if (needsAccount(route) && who.suspension !== undefined && route.servesSuspended !== true) {
      throw new Problem({ kind: 'forbidden', detail: toSuspension(who.suspension) })
    }
    const csrfToken = String(request.headers[csrfHeader.toLowerCase()] ?? '')
    if (route.method !== 'GET' && who.csrfToken !== null && !isSameSecret(who.csrfToken, csrfToken)) {
      throw new Problem({
        kind: 'forbidden',
        detail: `The request lacks ${csrfHeader} with the value from GET /admin/v1/session.`,
      })
    }
    return who
  }

  async function findWho(request: FastifyRequest): Promise<Who | undefined> {
    const bearer = /^Bearer (.+)$/.exec(request.headers.authorization ?? '')?.[1]
    if (bearer !== undefined) return findScript(bearer, request.ip)
    const token = findSessionToken(request)
    const visitor = token === undefined ? undefined : await signIn.findVisitor(token)
    if (visitor === undefined) return undefined
    const { member, membership, sessionId, csrfToken } = visitor
    return {
      actor: member.email,
      isOperator: member.isOperator,
      accountId: membership?.accountId ?? null,
      accountRole: membership?.role ?? null,
      suspension: membership?.accountSuspendedAt ? { reason: membership.suspendedReason } : undefined,
      memberId: member.id,
      sessionId,
      csrfToken,
    }
  }

  /** Wrong tokens cause a pause for their network, during which the right one is refused as well. */
  async function findScript(token: string, address: string): Promise<Who | undefined> {
    if (adminToken === undefined) return undefined
    const subject = toTokenSubject(address)
    if (!isSameSecret(adminToken, token)) {
      await throttle.begin([subject])
      return undefined
    }
    await throttle.requireNoPause(subject)
    return { ...anonymous, actor: 'operator token', isOperator: true }
  }
}

const needsAccount = ({ access }: Pick<Route, 'access'>) => access === 'account' || access === 'owner'

const toSuspension = ({ reason }: { reason: string | null }) =>
  `The account is suspended${reason === null ? '.' : `: ${reason}`}`

function toReason(access: Route['access'], who: Who): string {
  if (access === 'operator') return 'Only operators can do this.'
  if (who.accountId === null) return 'You do not belong to an account.'
  return 'Only owners of the account can do this.'
}
