import { connect, isIP, type NetConnectOpts, type OnReadOpts, type Socket } from 'node:net'
import { type ConnectionOptions, connect as connectTls } from 'node:tls'

/**
 * The functions of `node:http` that the service uses. An import of `node:http` would read all of its exports, some of
 * which load Node's `fetch`, WebSocket and HTTP/2: 50 ms of processor time in every process that starts.
 */
export const { Agent, createServer, get, request, STATUS_CODES } = process.getBuiltinModule('node:http')

/** A server of the operator's. With `tls`, the certificate of the server must name it. */
export type ServerAddress = { path: string } | { host: string; port: number; tls?: ConnectionOptions }

/** `onread` gets the bytes that arrive, in its own buffer, instead of the event `data`. */
type ConnectOptions = { signal?: AbortSignal; onread?: OnReadOpts }

export function connectTo(address: ServerAddress, options: ConnectOptions): Socket {
  if (!('tls' in address) || address.tls === undefined) return connect({ ...address, ...options } as NetConnectOpts)
  const { host, port, tls } = address
  // SNI has no addresses; the certificate is compared with `host` then.
  return connectTls({ servername: isIP(host) === 0 ? host : '', ...tls, host, port, ...options } as ConnectionOptions)
}
