import type { FastifyReply, FastifyRequest } from 'fastify'
import type { OpenedSession } from '../domain/console/sign-in.ts'

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
  const name = toName(request, cookie)
  const pairs = (request.headers.cookie ?? '').split(';').map((pair) => pair.trim())
  const value = pairs.find((pair) => pair.startsWith(`${name}=`))?.slice(name.length + 1)
  return value === undefined || value === '' || value.length > maxTokenLength ? undefined : value
}

/** Browsers never send the cookie with a request that another site causes, and scripts cannot read it. */
function toCookie(request: FastifyRequest, cookie: Cookie, value: string, maxAge: number | undefined): string {
  const age = maxAge === undefined ? '' : `; Max-Age=${maxAge}`
  return `${toName(request, cookie)}=${value}${age}; ${isSecure(request) ? 'Path=/; Secure' : 'Path=/admin'}; HttpOnly; SameSite=Strict`
}

/** Browsers accept a name with this prefix only over TLS and from the host itself, not from a sibling host name. */
const toName = (request: FastifyRequest, { name }: Cookie) => (isSecure(request) ? `__Host-${name}` : name)

/** Behind a proxy, X-Forwarded-Proto of a trusted proxy or ASSAY_PUBLIC_URL tells that browsers use https. */
const isSecure = ({ protocol, server }: FastifyRequest) =>
  protocol === 'https' || server.publicUrl?.startsWith('https:') === true
