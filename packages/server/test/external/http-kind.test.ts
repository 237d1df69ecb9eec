import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { createServer, type IncomingMessage, type RequestListener } from 'node:http'
import { createServer as createSecureServer } from 'node:https'
import type { AddressInfo, Socket } from 'node:net'
import { buffer } from 'node:stream/consumers'
import { test as nodeTest, type TestContext } from 'node:test'
import { EngineDown } from '../../src/domain/ports/engines.ts'
import { ContentRefused } from '../../src/engines/external/adapter.ts'
import { newContent } from '../scans/scan-support.ts'
import { findMistakes, newExternalEngine, openAdapter } from './external-support.ts'
import { newCertificate, openServer } from './servers.ts'

/** A call that hangs must fail its own test, not all of them. */
const test = (name: string, body: (t: TestContext) => Promise<void>) => nodeTest(name, { timeout: 60_000 }, body)

const small = newContent('content')
const large = newContent(randomBytes(3_000_000).toString('latin1'))
const neverAborted = new AbortController().signal

async function open(t: TestContext, url: string, more: object = {}) {
  const adapter = await openAdapter({ kind: 'http', url, format: 'json', ...more })
  t.after(adapter.close)
  return (content = small, { signal = neverAborted, fileName = 'a.txt' } = {}) =>
    adapter.scan(content, { signal, fileName })
}

type Seen = { url: string | undefined; headers: IncomingMessage['headers']; body: Buffer; port: number | undefined }

/** A service that reads the whole request and answers as the test says. */
async function openService(
  t: TestContext,
  answer: (seen: Seen) => { status?: number; headers?: object; body: unknown },
) {
  const requests: Seen[] = []
  const listener: RequestListener = async (request, response) => {
    const body = await buffer(request)
    const seen = { url: request.url, headers: request.headers, body, port: request.socket.remotePort }
    requests.push(seen)
    const { status = 200, headers = {}, body: reply } = answer(seen)
    response.writeHead(status, { 'content-type': 'application/json', ...headers })
    response.end(typeof reply === 'string' ? reply : JSON.stringify(reply))
  }
  const server = createServer(listener)
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  t.after(() => {
    server.closeAllConnections()
    server.close()
  })
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, requests }
}

test('the JSON form: the bytes, the name and the key go out, findings and version come back', async (t) => {
  const service = await openService(t, ({ body }) => ({
    body: { findings: body.length > 100 ? ['Big.One'] : [], version: 'Engine 3', sha256: toHash(body) },
  }))
  const scan = await open(t, `${service.url}/scan?mode=deep`, { api_key: 'a-secret-key' })
  assert.deepEqual(await scan(small, { fileName: 'ä b.txt' }), { findings: [], version: 'Engine 3' })
  assert.deepEqual(await scan(large), { findings: ['Big.One'], version: 'Engine 3' })
  const [first, second] = service.requests
  assert.equal(first?.body.toString(), 'content')
  assert.equal(second?.body.length, large.bytes)
  assert.equal(first?.url, '/scan?mode=deep')
  assert.deepEqual(
    [first?.headers['x-api-key'], first?.headers['x-file-name'], first?.headers['content-length']],
    ['a-secret-key', '%C3%A4%20b.txt', '7'],
  )
  assert.equal(first?.port, second?.port, 'the connection is kept')
})

function toHash(body: Buffer): string {
  return newContent(body.toString('latin1')).sha256
}

const hash = { hash_sha256: small.sha256 }

test('another Assay: verdicts become findings and doubts', async (t) => {
  let body: unknown
  const service = await openService(t, () => ({ status: 201, body }))
  const scan = await open(t, `${service.url}/`, { format: 'assay', api_key: 'a-secret-key' })
  for (const [result, findings, doubts] of [
    [{ status: 'clean', signals: [], metadata: { ...hash, engine_versions: 'ClamAV 1' } }, [], undefined],
    [{ status: 'threat', signals: ['Virus:A', 'Virus:B'], metadata: hash }, ['A', 'B'], undefined],
    [{ status: 'error', signals: ['Error:EncryptedContent'], metadata: hash }, [], ['EncryptedContent']],
  ] as const) {
    body = result
    const found = await scan(small, { fileName: 'a"\\.txt' })
    assert.deepEqual([found.findings, found.doubts], [findings, doubts])
  }
  const degraded = 'ClamAV is not installed.'
  body = { status: 'clean', signals: [], metadata: { ...hash, engine_versions: 'YARA-X 1', degraded } }
  assert.deepEqual(await scan(), { findings: [], version: 'Assay (degraded): YARA-X 1', degraded })
  body = { status: 'threat', signals: ['Virus:A'], metadata: { ...hash, degraded } }
  assert.deepEqual(await scan(), { findings: ['A'], version: 'Assay (degraded)' })
  const [first] = service.requests
  assert.equal(first?.url, '/v1/malware/scan/file')
  assert.match(first?.body.toString() ?? '', /name="file"; filename="a__\.txt"\r\n.*\r\n\r\ncontent\r\n--assay-/s)
})

test('all attempts of a scan have one Idempotency-Key, and every scan another', async (t) => {
  const answer = { findings: [], sha256: small.sha256 }
  let count = 0
  const service = await openService(t, () => (++count % 3 === 0 ? { body: answer } : { status: 503, body: '' }))
  const adapter = await openAdapter({ kind: 'http', url: service.url, format: 'json' })
  const engine = newExternalEngine(
    // The probe of the engine itself is not of this test.
    (content, options) =>
      options.fileName === 'probe.txt' ? Promise.resolve(answered) : adapter.scan(content, options),
    { retries: 2 },
  )
  t.after(engine.close)
  t.after(adapter.close)
  for (let scan = 0; scan < 2; scan++) await engine.scan(small, { signal: neverAborted }, { depth: 0, name: 'a.txt' })
  const keys = service.requests.map(({ headers }) => headers['idempotency-key'])
  assert.equal(keys.length, 6)
  assert.match(String(keys[0]), /^[\x21-\x7e]{1,255}$/)
  assert.deepEqual([new Set(keys.slice(0, 3)).size, new Set(keys.slice(3)).size, new Set(keys).size], [1, 1, 2])
})

const answered = { findings: [], version: undefined }

test('answers that are not exactly right are failures', async (t) => {
  let body: unknown
  let status = 200
  const service = await openService(t, () => ({ status, body, headers: { location: '/elsewhere' } }))
  const sha256 = small.sha256
  const json = await open(t, service.url)
  for (const wrong of [
    '',
    'OK',
    '[]',
    'null',
    '{"findings": []',
    {},
    { sha256 },
    { findings: 'none', sha256 },
    { findings: [1], sha256 },
    { findings: [] },
    { findings: [], sha256: sha256.toUpperCase() },
    { findings: [], sha256, version: 3 },
    'x'.repeat(70_000),
  ]) {
    body = wrong
    await assert.rejects(json(), EngineDown, JSON.stringify(wrong).slice(0, 80))
  }
  const assay = await open(t, service.url, { format: 'assay', api_key: 'a-secret-key' })
  for (const wrong of [
    { status: 'clean', signals: [] },
    { status: 'clean', signals: [], metadata: { hash_sha256: 'other' } },
    { status: 'clean', signals: ['Virus:A'], metadata: hash },
    { status: 'clean', metadata: hash },
    { status: 'threat', signals: [], metadata: hash },
    { status: 'pending', signals: [], metadata: hash },
    { status: 'error', signals: ['Error:EngineFailed'], metadata: hash },
    { status: 'error', signals: [], metadata: hash },
  ]) {
    body = wrong
    await assert.rejects(assay(), EngineDown, JSON.stringify(wrong))
  }
  body = { findings: [], sha256 }
  for (status of [204, 206, 301, 302, 307, 401, 402, 429, 500, 503]) await assert.rejects(json(), EngineDown)
  assert.ok(service.requests.every(({ url }) => url !== '/elsewhere'))
  for (status of [413, 422]) await assert.rejects(json(), ContentRefused)
})

const sha = small.sha256
const whole = JSON.stringify({ findings: [], sha256: sha })
const hostile: [what: string, serve: (socket: Socket) => void][] = [
  ['closes at once', (socket) => socket.destroy()],
  ['closes in the middle of the request', (socket) => socket.once('data', () => socket.destroy())],
  ['says nothing and ends', (socket) => socket.once('data', () => socket.end())],
  ['speaks no HTTP', (socket) => socket.write('220 mail.example.com ESMTP\r\n')],
  ['cuts its body', (socket) => answerWith(socket, `Content-Length: 500\r\n\r\n${whole}`)],
  ['cuts its chunks', (socket) => answerWith(socket, `Transfer-Encoding: chunked\r\n\r\n5\r\n{"fin`)],
  ['compresses its body', (socket) => answerWith(socket, 'Content-Encoding: gzip\r\nContent-Length: 3\r\n\r\nabc')],
  ['switches the protocol', (socket) => socket.write('HTTP/1.1 101 OK\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n')],
  ['sends endless headers', (socket) => flood(socket, 'HTTP/1.1 200 OK\r\n', 'X-More: more and more\r\n')],
  ['sends an endless header', (socket) => flood(socket, 'HTTP/1.1 200 OK\r\nX: ', 'x'.repeat(1000))],
  ['sends an endless body', (socket) => flood(socket, 'HTTP/1.1 200 OK\r\n\r\n', ' '.repeat(1000))],
]

function answerWith(socket: Socket, rest: string) {
  socket.once('data', () => socket.end(`HTTP/1.1 200 OK\r\nConnection: close\r\n${rest}`))
}

function flood(socket: Socket, start: string, part: string) {
  const more = () => {
    while (!socket.destroyed && socket.write(part.repeat(100))) {}
  }
  socket.on('data', () => {})
  socket.on('drain', more)
  socket.write(start)
  more()
}

for (const [what, serve] of hostile) {
  test(`a server that ${what} never makes content clean`, async (t) => {
    const { port } = await openServer(t, serve)
    const scan = await open(t, `http://127.0.0.1:${port}`)
    for (const content of [small, large]) await assert.rejects(scan(content), EngineDown)
  })
}

test('a clean answer before all bytes were read is not clean', async (t) => {
  const { port } = await openServer(t, (socket) => {
    const answer = JSON.stringify({ findings: [], sha256: 'not known yet' })
    socket.once('data', () => socket.write(`HTTP/1.1 200 OK\r\nContent-Length: ${answer.length}\r\n\r\n${answer}`))
  })
  const scan = await open(t, `http://127.0.0.1:${port}`)
  await assert.rejects(scan(large), EngineDown)
})

test('a server that never answers is left when the scan ends', async (t) => {
  for (const serve of [(socket: Socket) => socket.on('data', () => {}), (socket: Socket) => socket.pause()]) {
    const { port } = await openServer(t, serve)
    const scan = await open(t, `http://127.0.0.1:${port}`)
    for (const content of [small, large]) {
      const controller = new AbortController()
      const scanning = scan(content, { signal: controller.signal })
      controller.abort(new Error('enough'))
      await assert.rejects(scanning)
    }
  }
})

test('a kept connection that the server closed is opened again', async (t) => {
  const sockets: Socket[] = []
  const { port } = await openServer(t, (socket) => {
    sockets.push(socket)
    let request = ''
    let isAnswered = false
    socket.on('data', (part) => {
      request += part
      if (isAnswered) socket.destroy()
      if (isAnswered || !request.endsWith('\r\n\r\ncontent')) return
      socket.write(`HTTP/1.1 200 OK\r\nContent-Length: ${whole.length}\r\n\r\n${whole}`)
      isAnswered = true
    })
  })
  const scan = await open(t, `http://127.0.0.1:${port}`)
  assert.deepEqual((await scan()).findings, [])
  assert.deepEqual((await scan()).findings, [])
  assert.equal(sockets.length, 2)
})

test('HTTPS: the certificate must be for the server and from a known authority', async (t) => {
  const own = newCertificate(t, 'scan.example.com')
  const server = createSecureServer({ key: own.key, cert: own.cert }, async (request, response) => {
    const body = await buffer(request)
    response.end(JSON.stringify({ findings: [], sha256: toHash(body) }))
  })
  server.on('tlsClientError', () => {})
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  t.after(() => {
    server.closeAllConnections()
    server.close()
  })
  const url = `https://127.0.0.1:${(server.address() as AddressInfo).port}`
  const good = { ca_file: own.certFile, servername: 'scan.example.com' }
  assert.deepEqual((await (await open(t, url, good))()).findings, [])
  for (const wrong of [{}, { ca_file: own.certFile }, { servername: 'scan.example.com' }]) {
    await assert.rejects((await open(t, url, wrong))(), EngineDown)
  }
})

test('mistakes in the options of an http engine', async () => {
  const base = { name: 'other', kind: 'http' }
  for (const [values, mistake] of [
    [{ ...base, format: 'json' }, /url is missing: add url = "https:/],
    [{ ...base, format: 'json', url: 'scan.example.com' }, /url must be a URL/],
    [{ ...base, format: 'json', url: 'https://user:hush@scan.example.com' }, /url must be a URL/],
    [{ ...base, url: 'https://scan.example.com' }, /api_key is missing: add api_key_file/],
    [{ ...base, url: 'https://scan.example.com', api_key: 'a b' }, /api_key must be .* The value is not shown/],
    [{ ...base, format: 'soap', url: 'http://a', api_key: '12345678' }, /format must be one of assay, json/],
  ] as const) {
    const mistakes = findMistakes(values)
    assert.equal(mistakes.length, 1, mistakes.join('\n'))
    assert.match(mistakes[0] ?? '', mistake)
    assert.doesNotMatch(mistakes[0] ?? '', /hush|a b/)
  }
})
