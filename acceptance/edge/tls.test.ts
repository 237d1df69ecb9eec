import assert from 'node:assert/strict'
import { copyFileSync, existsSync, mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import type { IncomingHttpHeaders, IncomingMessage } from 'node:http'
import { request } from 'node:https'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { after, before, test } from 'node:test'
import { connect, type TLSSocket } from 'node:tls'
import { fileURLToPath } from 'node:url'
import { openRaw, sendRaw } from '../support/raw-socket.ts'
import { runProgram } from '../support/run-program.ts'
import { type Service, startService } from '../support/start-service.ts'
import { waitUntil } from '../support/wait-until.ts'

/** Self-signed certificates for tests, named after their files and valid for a hundred years. */
const certificates = new URL('../support/certificates/', import.meta.url)
const folder = mkdtempSync(join(tmpdir(), 'assay-tls-'))
const certFile = join(folder, 'cert.pem')
const keyFile = join(folder, 'key.pem')
let service: Service
before(async () => {
  install('first')
  // Nothing is scanned here, so the service needs no engine.
  service = await startService({ ASSAY_TLS_CERT: certFile, ASSAY_TLS_KEY: keyFile }, 'kept', { options: ['--test'] })
})
after(async () => {
  await service.stop()
  rmSync(folder, { recursive: true })
})

/** Installs a certificate as renewals do: written aside, then moved into place, the certificate before the key. */
function install(name: string) {
  for (const [from, to] of [
    [`${name}.crt`, certFile],
    [`${name}.key`, keyFile],
  ] as const) {
    copyFileSync(new URL(from, certificates), `${to}.new`)
    renameSync(`${to}.new`, to)
  }
}

async function openTls(): Promise<TLSSocket> {
  const { hostname, port } = new URL(service.url)
  const socket = connect({ host: hostname, port: Number(port), rejectUnauthorized: false })
  await new Promise<void>((resolve, reject) => socket.once('secureConnect', resolve).once('error', reject))
  return socket
}

async function servedName(): Promise<string> {
  const socket = await openTls()
  const { subject } = socket.getPeerCertificate()
  socket.destroy()
  return String(subject.CN)
}

async function ask(path: string, headers: Record<string, string> = {}, body = '') {
  const url = `${service.url}${path}`
  return new Promise<{ status: number; text: string; headers: IncomingHttpHeaders }>((resolve, reject) => {
    const method = body === '' ? 'GET' : 'POST'
    const options = { rejectUnauthorized: false, agent: false as const, headers, method }
    const read = async (answer: IncomingMessage) =>
      resolve({ status: answer.statusCode ?? 0, text: await text(answer), headers: answer.headers })
    request(url, options, read).once('error', reject).end(body)
  })
}

test('with a certificate the service uses HTTPS, also in its links', async () => {
  assert.match(service.url, /^https:/)
  assert.equal((await ask('/v1/ping', { 'x-api-key': service.apiKey })).status, 200)
  assert.equal(JSON.parse((await ask('/v1/nothing')).text).type, `${service.url}/problems/not-found`)
  assert.deepEqual(JSON.parse((await ask('/openapi.json')).text).servers, [{ url: service.url }])
})

test('browsers are told to stay with HTTPS, and cookies belong to this host alone', async () => {
  for (const path of ['/livez', '/v1/ping', '/console', '/admin/v1/session', '/nothing', '/reference/']) {
    const { headers } = await ask(path)
    assert.equal(headers['strict-transport-security'], 'max-age=31536000', path)
    assert.equal(headers['x-content-type-options'], 'nosniff', path)
  }
  const person = { name: 'Ada', email: 'ada@example.com', password: 'correct horse battery staple' }
  const token = service.consoleLink.slice(service.consoleLink.indexOf('#') + 1)
  const type = { 'content-type': 'application/json' }
  const { headers } = await ask('/admin/v1/link/accept', type, JSON.stringify({ ...person, token }))
  const [session = '', device = ''] = headers['set-cookie'] ?? []
  assert.match(session, /^__Host-assay_session=[\w-]{43}; Path=\/; Secure; HttpOnly; SameSite=Strict$/)
  assert.match(device, /^__Host-assay_device=[\w-]{43}; Max-Age=34560000; Path=\/; Secure; HttpOnly; SameSite=Strict$/)
  const [pair = ''] = session.split(';')
  assert.equal((await ask('/admin/v1/session', { cookie: pair })).status, 200)
  // Without the prefix, a sibling host could have set the cookie.
  assert.equal((await ask('/admin/v1/session', { cookie: pair.slice('__Host-'.length) })).status, 401)
})

test('bytes that are not HTTP get a problem over TLS, with a link to HTTPS', async () => {
  const socket = await openTls()
  socket.write('garbage\r\n\r\n')
  const answer = await text(socket)
  assert.match(answer, /^HTTP\/1\.1 400 /)
  assert.match(answer, new RegExp(`"type":"${service.url}/problems/malformed-request"`))
})

test('TLS versions before 1.2 are refused', async () => {
  const { hostname, port } = new URL(service.url)
  const old = { minVersion: 'TLSv1', maxVersion: 'TLSv1.1', ciphers: 'DEFAULT@SECLEVEL=0' } as const
  const socket = connect({ host: hostname, port: Number(port), rejectUnauthorized: false, ...old })
  await assert.rejects(new Promise((resolve, reject) => socket.once('secureConnect', resolve).once('error', reject)))
})

test('the service survives plain HTTP, invalid bytes and silence on the TLS port', async () => {
  const host = new URL(service.url).host
  const plain = await sendRaw(service.url, `GET /v1/ping HTTP/1.1\r\nHost: ${host}\r\n\r\n`).catch(() => [])
  assert.deepEqual(plain, [])
  for (let i = 0; i < 50; i++) {
    const connection = await openRaw(service.url)
    if (i % 3 > 0) await connection.send(Buffer.from(i % 3 === 1 ? '16030102000100' : '00ff00ff', 'hex'))
    if (i % 2 === 0) connection.reset()
    else connection.leave()
  }
  assert.equal((await ask('/livez')).status, 200)
})

test('a renewed certificate is used for new connections without a restart, and open ones continue', async () => {
  assert.equal(await servedName(), 'first')
  const open = await openTls()
  install('second')
  await waitUntil('the second certificate', async () => (await servedName()) === 'second')
  open.write(`GET /livez HTTP/1.1\r\nHost: scan.example.com\r\nConnection: close\r\n\r\n`)
  assert.match(await text(open), /^HTTP\/1\.1 200 /)
})

test('a certificate that cannot be used is logged, and the previous one stays in use', async () => {
  const refusals = () => service.log().split('the changed certificate cannot be used').length - 1
  for (const spoil of [
    () => writeFileSync(certFile, 'not a certificate'),
    () => copyFileSync(new URL('third.crt', certificates), certFile),
  ]) {
    const before = refusals()
    spoil()
    await waitUntil('the refusal in the log', () => refusals() > before)
    assert.equal(await servedName(), 'second')
  }
  install('third')
  await waitUntil('the third certificate', async () => (await servedName()) === 'third')
})

test('a service whose certificate cannot be used starts nothing, and prints no stack trace', async () => {
  const inFixtures = (name: string) => fileURLToPath(new URL(name, certificates))
  for (const cert of [join(folder, 'missing.pem'), inFixtures('first.crt')]) {
    const settings = { ASSAY_TLS_CERT: cert, ASSAY_TLS_KEY: inFixtures('second.key'), ASSAY_PORT: '0' }
    const { code, err } = await runProgram({ ASSAY_DATA_DIR: join(folder, 'data'), ...settings }, 'serve')
    assert.equal(code, 1, cert)
    assert.match(err, /ASSAY_TLS_CERT and ASSAY_TLS_KEY cannot be used/)
    assert.doesNotMatch(err, /^\s+at /m)
    assert(!existsSync(join(folder, 'data')), 'no database was created')
  }
})

test('doctor reaches a service whose certificate is for another name', async () => {
  const settings = { ASSAY_DATA_DIR: service.dataDir, ASSAY_TLS_CERT: certFile, ASSAY_TLS_KEY: keyFile }
  const { out } = await runProgram({ ...settings, ASSAY_PORT: new URL(service.url).port }, 'doctor', '--json')
  const { findings } = JSON.parse(out) as { findings: { check: string; ok: boolean; says: string }[] }
  const says = (check: string) => findings.find((finding) => finding.check === check)?.says ?? ''
  assert.match(says('certificate'), /^valid until /)
  assert.match(says('service'), new RegExp(`^${service.url} is (ready|degraded)\\.`))
})
