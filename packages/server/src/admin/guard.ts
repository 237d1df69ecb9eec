import { timingSafeEqual } from 'node:crypto'
import { csrfHeader, mayUse, type Route } from '@assay/contract/admin'
import type { FastifyReply, FastifyRequest } from 'fastify'
import type { SignIn } from '../domain/console/sign-in.ts'
import { Problem } from '../domain/problem.ts'
import type { Who } from './call.ts'

export type GuardDeps = { signIn: SignIn; adminToken: string | undefined }

/** The caller of a route for anyone. */
const anonymous: Who = { actor: '', role: 'member', accountId: null, memberId: null, sessionId: null, csrfToken: null }

/** Identifies the caller, checks their access, and checks the CSRF token of changes. */
export function makeGuard({ signIn, adminToken }: GuardDeps) {
  return async (route: Pick<Route, 'access' | 'method'>, request: FastifyRequest): Promise<Who> => {
    if (route.access === 'anyone') return anonymous
    const who = await findWho(request)
    if (who === undefined) throw new Problem({ kind: 'signed-out', detail: 'You are not signed in.' })
    if (route.access === 'signed-in' && who.memberId === null) {
      throw new Problem({
        kind: 'forbidden',
        detail: 'This route requires a session; the admin token is not sufficient.',
      })
    }
    if (!mayUse(route.access, { role: who.role, holdsAccount: who.accountId !== null })) {
      throw new Problem({ kind: 'forbidden', detail: toReason(route.access, who) })
    }
    if (
      route.method !== 'GET' &&
      who.csrfToken !== null &&
      !isSame(who.csrfToken, request.headers[csrfHeader.toLowerCase()])
    ) {
      throw new Problem({
        kind: 'forbidden',
        detail: `The request lacks ${csrfHeader} with the value from GET /admin/v1/session.`,
      })
    }
    return who
  }

  async function findWho(request: FastifyRequest): Promise<Who | undefined> {
    const bearer = /^Bearer (.+)$/.exec(request.headers.authorization ?? '')?.[1]
    if (bearer !== undefined) {
      const isOperator = adminToken !== undefined && isSame(adminToken, bearer)
      return isOperator ? { ...anonymous, actor: 'operator token', role: 'operator' } : undefined
    }
    const token = findSessionToken(request)
    const visitor = token === undefined ? undefined : await signIn.findVisitor(token)
    if (visitor === undefined) return undefined
    const { member, sessionId, csrfToken } = visitor
    return {
      actor: member.email,
      role: member.role,
      accountId: member.accountId,
      memberId: member.id,
      sessionId,
      csrfToken,
    }
  }
}

function toReason(access: Route['access'], who: Who): string {
  if (access === 'operator') return 'Only operators can do this.'
  if (who.accountId === null) return 'You do not belong to an account.'
  return 'Only owners of the account can do this.'
}

function isSame(expected: string, given: unknown): boolean {
  if (typeof given !== 'string') return false
  const [a, b] = [Buffer.from(expected), Buffer.from(given)]
  return a.length === b.length && timingSafeEqual(a, b)
}

const cookieName = 'assay_session'
/** The cookie is sent only to the admin API, never with a request that another site causes; scripts cannot read it. */
const cookieAttributes = 'Path=/admin; HttpOnly; SameSite=Strict'

function findSessionToken({ headers }: FastifyRequest): string | undefined {
  const pairs = (headers.cookie ?? '').split(';').map((pair) => pair.trim())
  const value = pairs.find((pair) => pair.startsWith(`${cookieName}=`))?.slice(cookieName.length + 1)
  return value === undefined || value === '' ? undefined : value
}

export function setSessionCookie(request: FastifyRequest, reply: FastifyReply, token: string) {
  reply.header('Set-Cookie', `${cookieName}=${token}; ${cookieAttributes}${toSecure(request)}`)
}

export function clearSessionCookie(request: FastifyRequest, reply: FastifyReply) {
  reply.header('Set-Cookie', `${cookieName}=; Max-Age=0; ${cookieAttributes}${toSecure(request)}`)
}

/** Behind a proxy that terminates TLS, only ASSAY_PUBLIC_URL tells that browsers use https. */
const toSecure = ({ protocol, server }: FastifyRequest) =>
  protocol === 'https' || server.publicUrl?.startsWith('https:') === true ? '; Secure' : ''
