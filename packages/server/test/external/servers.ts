import { execFileSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { TestContext } from 'node:test'
import { createServer as createTlsServer, type TlsOptions } from 'node:tls'

const openssl = 'openssl'

/** A server on 127.0.0.1 that does what the test says with each connection. */
export async function openServer(t: TestContext, onConnection: (socket: Socket) => void, tls?: TlsOptions) {
  const sockets: Socket[] = []
  const take = (socket: Socket) => {
    sockets.push(socket.on('error', () => {}))
    onConnection(socket)
  }
  const server: Server = tls === undefined ? createServer(take) : createTlsServer(tls, take)
  server.on('connection', (socket: Socket) => sockets.push(socket.on('error', () => {})))
  server.on('tlsClientError', () => {})
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  t.after(() => {
    for (const socket of sockets) socket.destroy()
    server.close()
  })
  return { port: (server.address() as AddressInfo).port }
}

/** A certificate for `name` that is its own authority, in files that end with the test. */
export function newCertificate(t: TestContext, name: string) {
  const dir = mkdtempSync(join(tmpdir(), 'assay-tls-'))
  t.after(() => rmSync(dir, { recursive: true, force: true }))
  const [keyFile, certFile] = [join(dir, 'key.pem'), join(dir, 'cert.pem')]
  const newKey = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-keyout', keyFile]
  const subject = ['-subj', `/CN=${name}`, '-addext', `subjectAltName=DNS:${name}`]
  execFileSync(openssl, ['req', '-x509', ...newKey, '-out', certFile, '-days', '2', ...subject], { stdio: 'ignore' })
  return { keyFile, certFile, key: readFileSync(keyFile, 'utf8'), cert: readFileSync(certFile, 'utf8') }
}
