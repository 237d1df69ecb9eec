import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { connect, type Socket } from 'node:net'
import { test as nodeTest, type TestContext } from 'node:test'
import { EngineDown } from '../../src/domain/ports/engines.ts'
import { ContentRefused } from '../../src/engines/external/adapter.ts'
import { answer, openFakeClamd } from '../clamav/fake-clamd.ts'
import { newContent } from '../scans/scan-support.ts'
import { openAdapter } from './external-support.ts'
import { newCertificate, openServer } from './servers.ts'

/** A call that hangs must fail its own test, not all of them. */
const test = (name: string, body: (t: TestContext) => Promise<void>) => nodeTest(name, { timeout: 60_000 }, body)

const small = newContent('content')
const large = newContent(randomBytes(400_000).toString('latin1'))

async function open(t: TestContext, address: string, more: object = {}) {
  const adapter = await openAdapter({ kind: 'clamd', address, ...more })
  t.after(adapter.close)
  return (content = small, signal = new AbortController().signal) =>
    adapter.scan(content, { signal, fileName: 'a.txt' })
}

test('another clamd gives findings and doubts on a kept connection', async (t) => {
  let reply = ''
  const clamd = await openFakeClamd(t, { onScan: ({ seen, n }) => answer(seen, n, reply) })
  const scan = await open(t, clamd.address.path)
  for (const [text, findings, doubts] of [
    ['stream: OK', [], []],
    ['stream: Win.Test.UNOFFICIAL FOUND', ['Win.Test'], []],
    ['stream: Heuristics.Encrypted.Zip FOUND', [], ['EncryptedContent']],
  ] as const) {
    reply = text
    const found = await scan()
    assert.deepEqual([found.findings, found.doubts], [findings, doubts])
  }
  assert.deepEqual(clamd.connections.map(({ scans }) => scans.length).filter(Boolean), [3])
})

test('content over the limit of the other clamd is refused, not clean', async (t) => {
  const reply = 'INSTREAM size limit exceeded. ERROR'
  const clamd = await openFakeClamd(t, { onScan: ({ seen, n }) => answer(seen, n, reply) })
  const scan = await open(t, clamd.address.path)
  await assert.rejects(scan(), (error) => error instanceof ContentRefused && /set max_bytes/.test(error.message))
})

const hostile: [what: string, serve: (socket: Socket) => void][] = [
  ['closes at once', (socket) => socket.destroy()],
  ['closes after the first bytes', (socket) => socket.once('data', () => socket.destroy())],
  ['ends without a reply', (socket) => socket.once('data', () => socket.end())],
  ['speaks HTTP', (socket) => socket.once('data', () => socket.end('HTTP/1.1 400 Bad Request\r\n\r\n'))],
  ['sends an endless line', (socket) => socket.once('data', () => flood(socket))],
  ['cuts its reply', (socket) => socket.once('data', () => socket.end('1: stream: O'))],
  ['replies to another command', (socket) => socket.once('data', () => socket.write('7: stream: OK\0'))],
  ['replies with an error', (socket) => socket.once('data', () => socket.write('1: stream: lost ERROR\0'))],
  ['replies with bytes', (socket) => socket.once('data', () => socket.write(`${randomBytes(64).toString('hex')}\0`))],
]

function flood(socket: Socket) {
  const more = () => {
    while (!socket.destroyed && socket.write('x'.repeat(65_536))) {}
  }
  socket.on('drain', more)
  more()
}

for (const [what, serve] of hostile) {
  test(`a server that ${what} never makes content clean`, async (t) => {
    const { port } = await openServer(t, serve)
    const scan = await open(t, `127.0.0.1:${port}`)
    for (const content of [small, large]) {
      // On a connection of its own, a reply is not numbered and may come early; the number then makes it unknown.
      await assert.rejects(scan(content), EngineDown)
    }
  })
}

test('a server that never replies is left when the scan ends', async (t) => {
  const { port } = await openServer(t, (socket) => socket.on('data', () => {}))
  const scan = await open(t, `127.0.0.1:${port}`)
  for (const content of [small, large]) {
    const controller = new AbortController()
    const scanning = scan(content, controller.signal)
    controller.abort(new Error('enough'))
    await assert.rejects(scanning)
  }
})

test('TLS: the certificate must be for the server and from a known authority', async (t) => {
  const clamd = await openFakeClamd(t)
  const own = newCertificate(t, 'clamd.example.com')
  const stranger = newCertificate(t, 'clamd.example.com')
  const tls = { key: own.key, cert: own.cert, ca: own.cert, requestCert: true, rejectUnauthorized: true }
  const { port } = await openServer(
    t,
    (socket) => {
      const inner = connect(clamd.address.path)
      inner.on('error', () => socket.destroy())
      socket.pipe(inner).pipe(socket)
    },
    tls,
  )
  const address = `127.0.0.1:${port}`
  const client = { cert_file: own.certFile, key_file: own.keyFile }
  const good = { tls: true, ca_file: own.certFile, servername: 'clamd.example.com', ...client }
  assert.deepEqual((await (await open(t, address, good))(small)).findings, [])
  assert.deepEqual((await (await open(t, address, good))(large)).findings, [])
  const { cert_file: _cert, key_file: _key, ...anonymous } = good
  const { ca_file: _ca, ...anyAuthority } = good
  const { servername: _name, ...byAddress } = good
  for (const wrong of [
    anonymous,
    anyAuthority,
    byAddress,
    { ...good, ca_file: stranger.certFile },
    { ...good, servername: 'other.example.com' },
    { ...good, cert_file: stranger.certFile, key_file: stranger.keyFile },
    {},
  ]) {
    const scan = await open(t, address, wrong)
    await assert.rejects(scan(small), EngineDown, JSON.stringify(Object.keys(wrong)))
    await assert.rejects(scan(large), EngineDown, JSON.stringify(Object.keys(wrong)))
  }
})

test('TLS: a server that speaks plain text, or says nothing, is no engine', async (t) => {
  const { certFile } = newCertificate(t, 'clamd.example.com')
  const options = { tls: true, ca_file: certFile, servername: 'clamd.example.com' }
  const plain = await openServer(t, (socket) => socket.write('220 hello\r\n'))
  await assert.rejects((await open(t, `127.0.0.1:${plain.port}`, options))(), EngineDown)
  const silent = await openServer(t, (socket) => socket.on('data', () => {}))
  const controller = new AbortController()
  const scanning = (await open(t, `127.0.0.1:${silent.port}`, options))(small, controller.signal)
  controller.abort(new Error('enough'))
  await assert.rejects(scanning)
})
