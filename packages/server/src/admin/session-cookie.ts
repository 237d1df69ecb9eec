import type { FastifyReply, FastifyRequest } from 'fastify'

const cookieName = 'assay_session'
/** Sent to the admin API alone, never with a request that another site caused, and out of reach of scripts. */
const attributes = 'Path=/admin; HttpOnly; SameSite=Strict'

export function findSessionToken({ headers }: FastifyRequest): string | undefined {
  const pairs = (headers.cookie ?? '').split(';').map((pair) => pair.trim())
  const value = pairs.find((pair) => pair.startsWith(`${cookieName}=`))?.slice(cookieName.length + 1)
  return value === undefined || value === '' ? undefined : value
}

export function setSessionCookie(request: FastifyRequest, reply: FastifyReply, token: string) {
  reply.header('Set-Cookie', `${cookieName}=${token}; ${attributes}${toSecure(request)}`)
}

export function clearSessionCookie(request: FastifyRequest, reply: FastifyReply) {
  reply.header('Set-Cookie', `${cookieName}=; Max-Age=0; ${attributes}${toSecure(request)}`)
}

/** Behind a proxy that ends TLS the operator says so by ASSAY_PUBLIC_URL. */
const toSecure = ({ protocol, server }: FastifyRequest) =>
  protocol === 'https' || server.publicUrl?.startsWith('https:') === true ? '; Secure' : ''
