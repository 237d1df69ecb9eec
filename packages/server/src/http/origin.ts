import type { Socket } from 'node:net'
import { TLSSocket } from 'node:tls'
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
  return /^[\w.:[\]-]{1,255}$/.test(host) ? `${request.protocol}://${host}` : toLocalOrigin(request.raw.socket)
}

/** For a caller that did not say which host it meant: the address it reached us at. */
export function toLocalOrigin(socket: Socket): string {
  const { localAddress = '127.0.0.1', localPort } = socket
  const host = localAddress.includes(':') ? `[${localAddress}]` : localAddress
  return `${socket instanceof TLSSocket ? 'https' : 'http'}://${host}:${localPort}`
}
