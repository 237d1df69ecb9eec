import assert from 'node:assert/strict'
import { X509Certificate } from 'node:crypto'
import { once } from 'node:events'
import { copyFileSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { connect, createServer, type Server, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, afterEach, describe, test } from 'node:test'
import { type ConnectionOptions, connect as connectTls } from 'node:tls'
import type { Connection } from '../../src/listeners/connection.ts'
import { type Listener, type ListenerTls, openListener } from '../../src/listeners/listener.ts'
import type { Failure } from '../../src/listeners/listener-scan.ts'
import { type CertificateFiles, makeCertificates } from '../support/certificates.ts'
import { newEndlessScans } from '../support/endless-scans.ts'
import * as clients from '../support/listener-clients.ts'
import { silentLog } from '../support/silent-log.ts'
import { waitFor } from '../support/wait-for.ts'
import { watchSocket } from './watch-socket.ts'

/** Answers every chunk; a chunk can ask for a fault, or that the connection stays open. */
async function serve(connection: Connection) {
  for await (const chunk of connection.chunks()) {
    if (chunk.includes('bug')) throw new Error('a fault')
    if (chunk.includes('scan')) connection.setBusy(true)
    else {
      await connection.send(`answer to ${chunk}\n`)
      connection.noteVerdict()
      if (!chunk.includes('stay')) return
    }
  }
}

const own = { serve, replies: { timeout: 'late\n', fail: ({ names: [reason] }: Failure) => `${reason}\n` } }

/** The reply to a client whose certificate is not accepted. */
const refused = 'InvalidCertificate\n'

describe('a listener with TLS', () => {
  const dir = mkdtempSync(join(tmpdir(), 'assay-tls-'))
  const { newAuthority, issue } = makeCertificates(dir)
  const ca = newAuthority('authority')
  const server = issue(ca, 'localhost', { names: 'DNS:localhost' })
  const client = issue(ca, 'gateway', {
    subject: '/CN=Mail gateway',
    names: 'DNS:mail.example.com,email:a@example.com',
  })
  after(() => rmSync(dir, { recursive: true, force: true }))

  let listener: Listener | undefined
  let refusals: string[] = []
  const errors: unknown[] = []
  const sockets: Socket[] = []
  afterEach(async () => {
    for (const socket of sockets.splice(0)) socket.destroy()
    await listener?.close()
    listener = undefined
    refusals = []
  })

  async function open(tls: Partial<ListenerTls> = {}, { files = server, maxConnections = 10, protocol = own } = {}) {
    const failures: unknown[] = []
    listener = await openListener({
      address: { host: '127.0.0.1', port: 0 },
      maxConnections,
      tls: {
        files: [files.cert, files.key],
        read: () => ({ ...readPair(files), ca: readFileSync(ca.cert) }),
        requiresCertificate: true,
        clients: undefined,
        handshakeMs: 10_000,
        ...tls,
      },
      ...protocol,
      onFailure: (error) => failures.push(error),
      onRejected: (_address, reason) => refusals.push(reason),
      log: { ...silentLog, error: (...args: unknown[]) => void errors.push(args) },
    })
    return failures
  }

  const readPair = ({ cert, key }: CertificateFiles) => ({ cert: readFileSync(cert), key: readFileSync(key) })

  function watch<T extends Socket>(socket: T) {
    sockets.push(socket)
    return watchSocket(socket)
  }

  const dial = (files: CertificateFiles | undefined, options: ConnectionOptions = {}) =>
    watch(
      connectTls({
        port: listener?.port ?? 0,
        host: '127.0.0.1',
        servername: 'localhost',
        ca: readFileSync(ca.cert),
        ...(files && readPair(files)),
        ...options,
      }),
    )
  const dialPlain = () => watch(connect({ port: listener?.port ?? 0, host: '127.0.0.1' }))

  /** Returns the answer, or that the connection was reset without one. */
  async function ask(files: CertificateFiles | undefined, options?: ConnectionOptions): Promise<string> {
    const { socket, heard, isReset } = dial(files, options)
    socket.write('hello')
    await waitFor(() => socket.closed)
    return heard() || (isReset() ? 'reset' : 'ended without a word')
  }

  test('serves clients with a certificate of the authority, and refuses all others', async () => {
    await open()
    const stranger = newAuthority('stranger')
    const expired = issue(ca, 'expired', { days: -1 })
    for (const maxVersion of ['TLSv1.2', 'TLSv1.3'] as const) {
      assert.equal(await ask(client, { maxVersion }), 'answer to hello\n')
      assert.equal(await ask(undefined, { maxVersion }), refused)
      assert.equal(await ask(issue(stranger, 'gateway-of-a-stranger'), { maxVersion }), refused)
      assert.equal(await ask(stranger, { maxVersion }), refused)
      assert.equal(await ask(expired, { maxVersion }), refused)
    }
    const reasons = ['no certificate', 'UNABLE_TO_VERIFY_LEAF_SIGNATURE', 'DEPTH_ZERO_SELF_SIGNED_CERT', 'HAS_EXPIRED']
    assert.deepEqual(
      refusals.map((refusal) => reasons.findIndex((reason) => refusal.includes(reason))),
      [0, 1, 2, 3, 0, 1, 2, 3],
      refusals.join('\n'),
    )
    assert.equal(listener?.countRejected(), 8)
    await waitFor(() => listener?.countConnections() === 0)
  })

  test('serves only listed certificates, by common name, DNS name, email address or fingerprint', async () => {
    const { fingerprint256 } = new X509Certificate(readFileSync(client.cert))
    const plain = fingerprint256.replaceAll(':', '').toLowerCase()
    for (const listed of ['mail GATEWAY', 'mail.example.com', 'a@example.com', fingerprint256, plain]) {
      await open({ clients: ['other.example.com', listed] })
      assert.equal(await ask(client), 'answer to hello\n', listed)
      await listener?.close()
    }
    const wildcard = issue(ca, 'wildcard', { subject: '/CN=*.example.com', names: 'DNS:*.example.com' })
    await open({ clients: ['mail.example.com', fingerprint256.replace(/../, '00')] })
    assert.equal(await ask(wildcard), refused)
    assert.equal(await ask(server), refused)
    assert.match(refusals.at(-1) ?? '', /is not listed: CN=localhost, SHA-256 ([0-9A-F]{2}:){31}/)
  })

  test('no session is resumed, so that every connection shows its certificate again', async () => {
    await open()
    for (const maxVersion of ['TLSv1.2', 'TLSv1.3'] as const) {
      const first = dial(client, { maxVersion })
      const sessions: Buffer[] = []
      first.socket.on('session', (session) => sessions.push(session))
      first.socket.write('stay')
      await waitFor(() => first.heard() !== '')
      for (const session of sessions) {
        const second = dial(client, { maxVersion, session })
        await once(second.socket, 'secureConnect')
        assert.equal(second.socket.isSessionReused(), false)
      }
      const session = sessions[0]
      if (session !== undefined) assert.equal(await ask(undefined, { maxVersion, session }), refused)
    }
  })

  test('plain text is reset', async () => {
    await open()
    for (const text of ['zINSTREAM\0', 'OPTIONS icap://x/avscan ICAP/1.0\r\n\r\n', 'PING\n']) {
      const { socket, heard, isReset } = dialPlain()
      socket.write(text)
      await waitFor(() => socket.closed)
      assert.deepEqual([heard(), isReset()], ['', true])
    }
    assert.match(refusals[0] ?? '', /the TLS handshake failed: ERR_SSL_/)
  })

  test('a handshake that does not end is reset', async () => {
    await open({ handshakeMs: 200 })
    const { socket, isReset } = dialPlain()
    socket.write(Buffer.from([0x16, 0x03, 0x01]))
    await waitFor(() => socket.closed)
    assert.equal(isReset(), true)
    assert.match(refusals[0] ?? '', /HANDSHAKE_TIMEOUT/)
  })

  test('silent connections keep no other client out', async () => {
    await open({}, { maxConnections: 2 })
    const silent = Array.from({ length: 70 }, dialPlain)
    await waitFor(() => silent.filter(({ isReset }) => isReset()).length === 4)
    assert.equal(await ask(client), 'answer to hello\n')
    await waitFor(() => silent.filter(({ socket }) => !socket.closed).length === 65)
    // The client has its answer a moment before the listener sees its end.
    await waitFor(() => listener?.countConnections() === 0)
    listener?.startStopping(0)
    await waitFor(() => silent.every(({ isReset }) => isReset()))
  })

  test('many clients that connect at once are served', async () => {
    await open({}, { maxConnections: 100 })
    const answers = await Promise.all(Array.from({ length: 100 }, () => ask(client)))
    assert.deepEqual([...new Set(answers)], ['answer to hello\n'], refusals[0])
  })

  test('a connection beyond the limit gets its reply', async () => {
    await open({}, { maxConnections: 1 })
    const first = dial(client)
    first.socket.write('stay')
    await waitFor(() => first.heard() !== '')
    assert.equal(await ask(client), 'Overloaded\n')
  })

  test('a connection that ends without a verdict gets a reply, because tunnels turn a reset into an ordinary end', async () => {
    const failures = await open()
    const faulty = dial(client)
    faulty.socket.write('bug')
    await waitFor(() => faulty.socket.closed)
    assert.deepEqual([faulty.heard(), failures.length], ['ServiceUnavailable\n', 1])
    const [idle, busy, answered] = [dial(client), dial(client), dial(client)]
    busy.socket.write('scan')
    answered.socket.write('stay')
    await waitFor(() => listener?.countConnections() === 3 && answered.heard() !== '')
    await waitFor(() => busy.socket.bytesWritten > 0)
    listener?.startStopping(50)
    await waitFor(() => [idle, busy, answered].every(({ socket }) => socket.closed))
    assert.deepEqual(
      [idle, busy, answered].map(({ heard }) => heard()),
      ['ServiceUnavailable\n', 'ServiceUnavailable\n', 'answer to stay\n'],
    )
  })

  /** Opens a tunnel for clients without TLS, which turns a reset into an ordinary end. */
  async function openTunnel(files: CertificateFiles | undefined): Promise<Server> {
    const tunnel = createServer((local) => {
      const { socket } = dial(files)
      socket.on('data', (chunk) => local.write(chunk)).on('close', () => local.end())
      local.on('error', () => {}).pipe(socket)
    })
    await new Promise<void>((resolve) => tunnel.listen(0, '127.0.0.1', resolve))
    return tunnel
  }

  for (const [kind, scans, outcomes] of [
    [
      'clamd',
      [clients.scanAsOcisClamd, clients.scanAsDiscourse, clients.scanAsNextcloudClamd],
      ['infected', 'infected', 'infected'],
    ],
    ['icap', [clients.scanAsOcisIcap, clients.scanAsRspamdIcap], ['infected', 'failed']],
  ] as const) {
    for (const files of [client, undefined]) {
      const cause = files === undefined ? 'a refused certificate' : 'a stop during a scan'
      test(`${cause} is not taken for clean through a tunnel to ${kind}`, async (t) => {
        const endless = newEndlessScans()
        await open({}, { protocol: endless[kind] })
        const tunnel = await openTunnel(files)
        t.after(() => tunnel.close())
        const { port } = tunnel.address() as { port: number }
        const answers = Promise.all(scans.map((scan) => scan(port, Buffer.from('content'))))
        if (files !== undefined) {
          await waitFor(() => endless.state.begun === scans.length)
          listener?.startStopping(0)
        }
        assert.deepEqual(await answers, outcomes)
        // The scans never end, and with them the connections.
        listener?.startStopping(0)
        listener = undefined
      })
    }
  }

  test('a client may close its half and still gets its reply', async () => {
    await open()
    const { socket, heard } = dial(client, { allowHalfOpen: true } as ConnectionOptions)
    socket.end('hello')
    await waitFor(() => heard() === 'answer to hello\n')
  })

  test('changed files are used for new connections, and unusable ones are not', async () => {
    const files = { cert: join(dir, 'current.crt'), key: join(dir, 'current.key') }
    const install = ({ cert, key }: CertificateFiles) => {
      copyFileSync(key, files.key)
      copyFileSync(cert, files.cert)
    }
    install(server)
    await open({}, { files })
    const servedName = async () => {
      const { socket } = dial(client, { checkServerIdentity: () => undefined })
      await once(socket, 'secureConnect')
      const name = socket.getPeerX509Certificate()?.subject
      socket.destroy()
      return name
    }
    assert.equal(await servedName(), 'CN=localhost')
    writeFileSync(files.cert, 'not a certificate')
    await waitFor(() => errors.length > 0)
    assert.equal(await servedName(), 'CN=localhost')
    install(issue(ca, 'renewed'))
    await waitFor(async () => (await servedName()) === 'CN=renewed')
    // The certificates of clients are still required.
    assert.equal(await ask(undefined, { checkServerIdentity: () => undefined }), refused)
  })
})
