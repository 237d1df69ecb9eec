import { connect, isIP, type NetConnectOpts, type Socket } from 'node:net'
import { type ConnectionOptions, connect as connectTls } from 'node:tls'

/** A server of the operator's. With `tls`, the certificate of the server must name it. */
export type ServerAddress = { path: string } | { host: string; port: number; tls?: ConnectionOptions }

export function connectTo(address: ServerAddress, signal: AbortSignal): Socket {
  if (!('tls' in address) || address.tls === undefined) return connect({ ...address, signal } as NetConnectOpts)
  const { host, port, tls } = address
  // SNI has no addresses; the certificate is compared with `host` then.
  return connectTls({ servername: isIP(host) === 0 ? host : '', ...tls, host, port, signal } as ConnectionOptions)
}
