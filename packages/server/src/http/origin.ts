import type { FastifyRequest } from 'fastify'

declare module 'fastify' {
  interface FastifyInstance {
    /** ASSAY_PUBLIC_URL, when the operator set it. */
    publicUrl: string | undefined
  }
}

/** The origin our links carry: what the operator says, else the one this caller used. */
export function toOrigin(request: FastifyRequest): string {
  const { publicUrl } = request.server
  if (publicUrl !== undefined) return publicUrl
  const host = request.headers.host ?? ''
  // Only ever shown to whoever sent it, but it goes into JSON and pages: nothing but a host may pass.
  return /^[\w.:[\]-]{1,255}$/.test(host) ? `${request.protocol}://${host}` : ''
}
