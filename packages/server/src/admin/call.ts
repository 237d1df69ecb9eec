import type { AccountRole, AdminRouteName, adminRoutes, Static, TSchema } from '@assay/contract/admin'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { validate as isUuid } from 'uuid'
import type { Clock } from '../domain/clock.ts'
import type { Origin } from '../domain/console/authentication.ts'
import type { OpenedSession } from '../domain/console/sign-in.ts'
import type { Member, MemberStore, Removal } from '../domain/ports/member-store.ts'
import type { AuditLog } from '../domain/ports/operations.ts'
import { OperatorMistake, Problem } from '../domain/problem.ts'

type Of<N extends AdminRouteName, K extends 'query' | 'body' | 'answer'> = (typeof adminRoutes)[N] extends {
  [key in K]: infer S extends TSchema
}
  ? Static<S>
  : undefined

/** The caller of a route: a member with a session, or a script with the operator token. */
export type Who = {
  /** The name of the caller in the audit log. */
  actor: string
  isOperator: boolean
  /** The account that the session works in, and the role of the caller in it. */
  accountId: string | null
  accountRole: AccountRole | null
  /** Set while that account is suspended. */
  suspension: { reason: string | null } | undefined
  memberId: string | null
  sessionId: string | null
  csrfToken: string | null
}

/** Writes one entry to the audit log. `accountId` is the account of the caller, or for operators the given one. */
export type Audit = (
  action: string,
  target?: string,
  more?: { detail?: string; accountId?: string | null },
) => Promise<void>

export type Call<N extends AdminRouteName> = {
  /** The caller. Routes for anyone get an empty one. */
  who: Who
  origin: Origin
  audit: Audit
  atomically: AuditLog['atomically']
  params: Record<string, string>
  query: Of<N, 'query'>
  body: Of<N, 'body'>
  request: FastifyRequest
  reply: FastifyReply
}

type Answer<N extends AdminRouteName> = Of<N, 'answer'> extends undefined ? unknown : Of<N, 'answer'>

/** The handler of each route gets a call that is authorized and validated, and returns the response body. */
export type Handlers<N extends AdminRouteName = AdminRouteName> = {
  [Name in N]: (call: Call<Name>) => Promise<Answer<Name>>
}

/** Returns the account of the caller of a route that is for members of an account. */
export function getAccountId({ who }: { who: Who }): string {
  if (who.accountId === null) throw new Error('A handler for members of an account ran without the guard')
  return who.accountId
}

/** Returns the member behind a session. The operator token belongs to no member. */
export async function getMember(members: MemberStore, { memberId }: Who): Promise<Member> {
  const member = memberId === null ? undefined : await members.findMember(memberId)
  if (member === undefined) throw new Problem({ kind: 'forbidden', detail: 'This route requires a session.' })
  return member
}

/** Throws "not found", with the same response for what does not exist and for what belongs to another account. */
export function requireFound<T>(found: T | undefined | false, what: string): T {
  if (found === undefined || found === false) {
    throw new Problem({ kind: 'not-found', detail: `There is no such ${what}.` })
  }
  return found
}

/** Throws when a person was not removed or suspended: there is no such person, or nobody else has this role. */
export function requireRemoved(removal: Removal, role: 'operator' | 'owner') {
  if (removal === 'last') {
    const detail = `Nobody else can sign in as ${role}. Invite another ${role} first.`
    throw new Problem({ kind: 'conflict', detail })
  }
  requireFound(removal === 'done', role === 'owner' ? 'member' : role)
}

/** Turns a mistake of the operator, which commands print, into a 409 response. */
export function toConflict(error: unknown): never {
  if (error instanceof OperatorMistake) throw new Problem({ kind: 'conflict', detail: error.message }, { cause: error })
  throw error
}

/** Returns the `id` of the path. An id that is not a UUID matches no row, so the database is not asked. */
export const getId = ({ params: { id = '' } }: { params: Record<string, string> }, what: string): string =>
  requireFound(isUuid(id) && id, what)

/** Reads an optional end date, which must be in the future. */
export function readExpiry(value: string | null | undefined, clock: Clock): Date | null {
  if (value === undefined || value === null) return null
  const date = new Date(value)
  if (date <= clock.now()) {
    throw new Problem({ kind: 'validation', errors: { expires_at: ['Enter a time in the future.'] } })
  }
  return date
}

const dayMs = 86_400_000

/** The times between which a filter by days lies, in UTC. It includes the last day, so it ends where the next begins. */
export const toTimes = ({ from, to }: { from: string | undefined; to: string | undefined }) => ({
  from: from === undefined ? undefined : new Date(`${from}T00:00:00Z`),
  to: to === undefined ? undefined : new Date(Date.parse(`${to}T00:00:00Z`) + dayMs),
})

const pageSize = 50

/** Lists one page. It asks for one row more than the page has, to learn whether there is a next page. */
export async function listPage<Row, Item extends { id: string }>(
  query: { cursor?: string; limit?: string },
  list: (page: { cursor: string | undefined; limit: number }) => Promise<Row[]>,
  toItem: (row: Row) => Item,
  isCursor: (text: string) => boolean = isUuid,
): Promise<{ items: Item[]; next: string | null }> {
  const limit = Number(query.limit ?? pageSize)
  const cursor = query.cursor !== undefined && isCursor(query.cursor) ? query.cursor : undefined
  const rows = await list({ cursor, limit: limit + 1 })
  const items = rows.slice(0, limit).map(toItem)
  return { items, next: rows.length > limit ? (items.at(-1)?.id ?? null) : null }
}

/**
 * The session ends with the browser, or earlier on the server. The device is remembered for up to 400 days. A single
 * sign-on takes ten minutes at most.
 */
const cookies = {
  session: { name: 'assay_session', maxAge: undefined },
  device: { name: 'assay_device', maxAge: 400 * 86_400 },
  sso: { name: 'assay_sso', maxAge: 600 },
}
type Cookie = (typeof cookies)[keyof typeof cookies]

export const findSessionToken = (request: FastifyRequest) => findCookie(request, cookies.session)
export const findDeviceToken = (request: FastifyRequest) => findCookie(request, cookies.device)
export const findSsoToken = (request: FastifyRequest) => findCookie(request, cookies.sso)

export function setSsoCookie(request: FastifyRequest, reply: FastifyReply, token: string) {
  reply.header('Set-Cookie', toCookie(request, cookies.sso, token, cookies.sso.maxAge))
}

export function clearSsoCookie(request: FastifyRequest, reply: FastifyReply) {
  reply.header('Set-Cookie', toCookie(request, cookies.sso, '', 0))
}

export function setSessionCookies(request: FastifyRequest, reply: FastifyReply, { token, device }: OpenedSession) {
  const { session, device: deviceCookie } = cookies
  reply.header('Set-Cookie', [
    toCookie(request, session, token, session.maxAge),
    toCookie(request, deviceCookie, device, deviceCookie.maxAge),
  ])
}

export function clearSessionCookie(request: FastifyRequest, reply: FastifyReply) {
  reply.header('Set-Cookie', toCookie(request, cookies.session, '', 0))
}

/** Tokens have 43 characters; longer values, which only other programs set, are ignored. */
const maxTokenLength = 100

function findCookie(request: FastifyRequest, cookie: Cookie): string | undefined {
  const name = toCookieName(request, cookie)
  const pairs = (request.headers.cookie ?? '').split(';').map((pair) => pair.trim())
  const value = pairs.find((pair) => pair.startsWith(`${name}=`))?.slice(name.length + 1)
  return value === undefined || value === '' || value.length > maxTokenLength ? undefined : value
}

/** Browsers never send the cookie with a request that another site causes, and scripts cannot read it. */
function toCookie(request: FastifyRequest, cookie: Cookie, value: string, maxAge: number | undefined): string {
  const age = maxAge === undefined ? '' : `; Max-Age=${maxAge}`
  return `${toCookieName(request, cookie)}=${value}${age}; ${isSecure(request) ? 'Path=/; Secure' : 'Path=/admin'}; HttpOnly; SameSite=Strict`
}

/** Browsers accept a name with this prefix only over TLS and from the host itself, not from a sibling host name. */
const toCookieName = (request: FastifyRequest, { name }: Cookie) => (isSecure(request) ? `__Host-${name}` : name)

/** Behind a proxy, X-Forwarded-Proto of a trusted proxy or ASSAY_PUBLIC_URL tells that browsers use https. */
const isSecure = ({ protocol, server }: FastifyRequest) =>
  protocol === 'https' || server.publicUrl?.startsWith('https:') === true
