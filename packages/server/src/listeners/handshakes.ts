import { constants, type X509Certificate } from 'node:crypto'
import type { Socket } from 'node:net'
import { createServer, type SecureContextOptions, type TLSSocket } from 'node:tls'

type Deps = {
  /** The certificate of the listener with its key, and the authorities of client certificates if required. */
  context: SecureContextOptions
  requiresCertificate: boolean
  /** Names or SHA-256 fingerprints of certificates, one of which a client must have; undefined for any. */
  clients: readonly string[] | undefined
  /** Time for a handshake. */
  handshakeMs: number
  /** Handshakes in progress. One more ends the oldest, so that connections that stay silent keep no client out. */
  maxPending: number
  /** Called with a socket whose handshake is complete, and the connection below it. */
  onSecure(socket: TLSSocket, raw: Socket): void
  /** Called for a connection without a complete handshake, which is to be reset. */
  onRefused(raw: Socket, reason: string): void
  /** Called for a client whose certificate is not accepted. Its handshake is complete, so it can get a reply. */
  onUnwanted(socket: TLSSocket, raw: Socket, reason: string): void
}

/**
 * Makes connections secure. The connections below TLS are kept, because only they can be reset: the end of a TLS
 * connection without a reply is an ordinary end to some clients.
 */
export function makeHandshakes(deps: Deps) {
  const { context, requiresCertificate, clients, handshakeMs, maxPending, onSecure, onRefused, onUnwanted } = deps
  const pending = new Map<string, Socket>()
  const server = createServer({
    ...withoutResumption(context, requiresCertificate),
    requestCert: requiresCertificate,
    // The certificate is checked here, where the client can get a reply and the reason is logged.
    rejectUnauthorized: false,
    handshakeTimeout: handshakeMs,
  })

  function takePending(socket: Socket): Socket | undefined {
    const key = toPeer(socket)
    const raw = pending.get(key)
    pending.delete(key)
    return raw
  }

  server.on('secureConnection', (socket) => {
    socket.on('error', () => {})
    const raw = takePending(socket)
    if (raw === undefined) {
      socket.destroy()
      return
    }
    const fault = requiresCertificate ? findFault(socket, clients) : undefined
    if (fault === undefined) onSecure(socket, raw)
    else onUnwanted(socket, raw, fault)
  })
  server.on('tlsClientError', (error: NodeJS.ErrnoException, socket) => {
    const raw = takePending(socket)
    if (raw !== undefined) onRefused(raw, `the TLS handshake failed: ${error.code ?? error.message}`)
  })

  return {
    begin(raw: Socket) {
      if (raw.remoteAddress === undefined) {
        raw.destroy()
        return
      }
      const [oldest] = pending.size >= maxPending ? pending : []
      if (oldest !== undefined) {
        pending.delete(oldest[0])
        onRefused(oldest[1], 'too many TLS handshakes are in progress')
      }
      const key = toPeer(raw)
      pending.set(key, raw)
      raw.once('close', () => {
        if (pending.get(key) === raw) pending.delete(key)
      })
      server.emit('connection', raw)
    },
    listPending: () => [...pending.values()],
    setContext: (renewed: SecureContextOptions) =>
      server.setSecureContext(withoutResumption(renewed, requiresCertificate)),
  }
}

/** Tells TCP connections of one port apart. Node does not tell which connection is below a TLS socket. */
const toPeer = ({ remoteAddress, remotePort, localAddress }: Socket) =>
  [remoteAddress, remotePort, localAddress].join(' ')

/** A resumed session would not be checked again: neither the certificate, nor whether there was one. */
const withoutResumption = (context: SecureContextOptions, requiresCertificate: boolean): SecureContextOptions =>
  requiresCertificate ? { ...context, secureOptions: constants.SSL_OP_NO_TICKET } : context

/** Finds the reason why the certificate of a client is not accepted. */
function findFault(socket: TLSSocket, clients: readonly string[] | undefined): string | undefined {
  const certificate = socket.getPeerX509Certificate()
  if (certificate === undefined) return 'the client has no certificate'
  if (!socket.authorized) return `the certificate of the client is not valid: ${socket.authorizationError}`
  if (clients === undefined || clients.some((client) => isCertificateOf(certificate, client))) return undefined
  return `the certificate of the client is not listed: ${certificate.subject}, SHA-256 ${certificate.fingerprint256}`
}

const fingerprintForm = /^(?:[0-9a-f]{2}:?){31}[0-9a-f]{2}$/i
const toDigits = (fingerprint: string) => fingerprint.replaceAll(':', '').toLowerCase()

/** Compares a fingerprint, an email address, or a name with the common name and the DNS names of a certificate. */
function isCertificateOf(certificate: X509Certificate, client: string): boolean {
  if (fingerprintForm.test(client)) return toDigits(client) === toDigits(certificate.fingerprint256)
  if (client.includes('@')) return certificate.checkEmail(client, { subject: 'always' }) !== undefined
  return certificate.checkHost(client, { subject: 'always', wildcards: false }) !== undefined
}
