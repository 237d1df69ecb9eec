import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { filePart, formType, textPart, toForm } from '../support/forms.ts'
import { sendTo } from '../support/http.ts'
import { sendRawOnce } from '../support/raw-socket.ts'
import { type Service, startService, withoutImages } from '../support/start-service.ts'
import { waitUntil } from '../support/wait-until.ts'

const key = 'operator-chosen-key-4711'
const webhookSecret = 'operator-chosen-secret-0815'
const trace = '4bf92f3577b34da6a3ce929d0e0e4736'
const span = '00f067aa0ba902b7'
const form = /^00-[0-9a-f]{32}-[0-9a-f]{16}-01$/

let service: Service
before(async () => {
  service = await startService({
    ...withoutImages,
    ASSAY_BOOTSTRAP_KEY: key,
    ASSAY_BOOTSTRAP_WEBHOOK_SECRET: webhookSecret,
    ASSAY_LOG_LEVEL: 'debug',
  })
})
after(() => service.stop())

async function askTraceId(headers: Record<string, string | string[]> = {}): Promise<string> {
  const answer = await sendTo(service.url, { method: 'GET', path: '/v1/nothing', headers })
  return JSON.parse(answer.text).traceId
}

type Line = { traceId?: string; msg: string; [name: string]: unknown }

/** Reads the log lines of one request. The log is buffered, so it waits for them. */
async function readLines(traceId: string): Promise<Line[]> {
  await waitUntil(`the log line of ${traceId}`, () => service.log().includes(traceId))
  const whole = service.log().split('\n').slice(0, -1)
  return whole.map((line) => JSON.parse(line) as Line).filter((line) => line.traceId === traceId)
}

test('every problem has a W3C trace id of its own', async () => {
  const ids = await Promise.all(Array.from({ length: 300 }, () => askTraceId()))
  for (const id of ids) assert.match(id, form)
  assert.equal(new Set(ids.map((id) => id.slice(3, 35))).size, 300)
  assert.equal(new Set(ids.map((id) => id.slice(36, 52))).size, 300)
})

test('a trace of the caller is continued with a new span', async () => {
  for (const rest of ['00-@-01', '00-@-00', '01-@-01', 'cc-@-01-what-comes-later']) {
    const traceId = await askTraceId({ traceparent: rest.replace('@', `${trace}-${span}`) })
    assert.match(traceId, form)
    assert.equal(traceId.slice(3, 35), trace)
    assert.notEqual(traceId.slice(36, 52), span)
  }
})

test('a traceparent that is not valid is ignored', async () => {
  const good = `00-${trace}-${span}-01`
  const bad = `nonsense 00-${trace} 00-${trace}-${span} 00-${trace}-${span}-1 ${good}0 ${good}-more
    ff-${trace}-${span}-01 0-${trace}-${span}-01 00-${trace.toUpperCase()}-${span}-01 00-${'0'.repeat(32)}-${span}-01
    00-${trace}-${'0'.repeat(16)}-01 00-${trace}x-${span}-01 00_${trace}_${span}_01 ${'a'.repeat(20_000)}`
  for (const traceparent of ['', ...bad.split(/\s+/)]) {
    const traceId = await askTraceId({ traceparent })
    assert.match(traceId, form)
    assert.notEqual(traceId.slice(3, 35), trace, traceparent)
    assert.notEqual(traceId.slice(3, 35), '0'.repeat(32), traceparent)
  }
  const twice = await askTraceId({ traceparent: [good, good.replace('4bf9', 'aaaa')] })
  assert.match(twice, form)
})

test('the log line of a request has the trace id of its response, and method, path and status', async () => {
  const traceId = await askTraceId()
  const [line, ...more] = await readLines(traceId)
  assert.deepEqual(more, [])
  const { method, path, status, msg } = line as Line
  assert.deepEqual({ method, path, status, msg }, { method: 'GET', path: '/v1/nothing', status: 404, msg: 'request' })
})

test('every refused request can be found in the log by its trace id', async () => {
  const { host } = new URL(service.url)
  const raw = async (bytes: string) => JSON.parse((await sendRawOnce(service.url, bytes)).text)
  const problems = [
    await raw('garbage\r\n\r\n'),
    await raw(`GET /v1/ping HTTP/1.1\r\nHost: ${host}\r\nX-Note: ${'a'.repeat(40_000)}\r\n\r\n`),
    await raw(`CONNECT ${host} HTTP/1.1\r\nHost: ${host}\r\n\r\n`),
    await raw('GET /v1/ping HTTP/1.1\r\n\r\n'),
    await raw(`GET /v1/ping% HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`),
    await raw(`GET //v1 HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`),
    await raw(`POST /v1/ping HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\nContent-Length: 0\r\n\r\n`),
  ]
  for (const { traceId, status } of problems) {
    const [line] = await readLines(traceId)
    assert.equal(line?.status, status)
  }
})

test('an accepted request is logged with the trace of the caller and its account', async () => {
  // The whole id is compared: ids that the service chooses may begin in the same way.
  const own = trace.replace('4bf9', 'beef')
  const headers = { 'x-api-key': key, traceparent: `00-${own}-${span}-01` }
  assert.equal((await sendTo(service.url, { method: 'GET', path: '/v1/ping', headers })).status, 200)
  const isLogged = new RegExp(`^.*"traceId":"00-${own}.*$`, 'm')
  await waitUntil('its line', () => isLogged.test(service.log()))
  const line = service.log().match(isLogged)?.[0] ?? '{}'
  assert.match(JSON.parse(line).accountId, /^[0-9a-f-]{36}$/)
})

test('no key, secret, header, query, name, address or content is in any log line', async () => {
  const secrets = [key, webhookSecret]
  const secret = (name: string) => {
    const value = `hush-${name}-${Math.random().toString(36).slice(2)}`
    secrets.push(value)
    return value
  }
  const send = (path: string, headers: Record<string, string>, body: string | Buffer) =>
    sendTo(service.url, { method: 'POST', path: `${path}?token=${secret('query')}`, headers, body })
  const json = { 'content-type': 'application/json' }
  const url = `https://${secret('host')}.example/${secret('path')}`
  const parts = [textPart('file_name', secret('name')), textPart('callback_url', url), filePart(secret('content'))]
  const broken = toForm([filePart(secret('broken'))]).subarray(0, -8)

  const known = { 'x-api-key': key }
  const upload = { ...known, 'content-type': formType }
  const [scanUrl, submitUrl, submitFile] = ['/v1/malware/scan/url', '/v1/malware/submit/url', '/v1/malware/submit/file']
  const requests: [status: number, path: string, headers: Record<string, string>, body: string | Buffer][] = [
    [401, scanUrl, { 'x-api-key': secret('wrong'), ...json }, '{}'],
    [400, scanUrl, { ...known, ...json, cookie: secret('cookie') }, `{"a":"${secret('json')}`],
    [202, submitUrl, { ...known, ...json }, JSON.stringify({ file_url: url, callback_url: url })],
    [422, submitUrl, { ...known, ...json }, JSON.stringify({ file_url: secret('address') })],
    [202, submitFile, upload, toForm(parts)],
    [400, submitFile, upload, broken],
    [415, submitFile, { ...known, 'content-type': `text/${secret('type')}` }, ''],
  ]
  for (const [status, ...request] of requests) assert.equal((await send(...request)).status, status)
  await sendRawOnce(service.url, `${secret('garbage')}\r\n\r\n`)
  await readLines(await askTraceId())
  for (const hidden of secrets) assert(!service.log().includes(hidden), `${hidden} is in the log`)
})
