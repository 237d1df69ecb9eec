import assert from 'node:assert/strict'
import { afterEach, before, describe, test } from 'node:test'
import type { ProblemKind } from '@assay/contract'
import { assertProblem } from '../support/problems.ts'
import { openRaw, type RawAnswer, sendRaw, sendRawOnce, toStatuses } from '../support/raw-socket.ts'
import { getSharedService } from '../support/shared-service.ts'

const service = getSharedService()
const { host } = new URL(service.url)
let key = ''
before(async () => {
  key = (await service.createAccount()).api_key
})
afterEach(async () => {
  assert.equal((await fetch(`${service.url}/livez`)).status, 200, 'the service is alive afterwards')
})

const head = (requestLine: string, ...lines: string[]) =>
  [requestLine, `Host: ${host}`, `X-API-Key: ${key}`, ...lines, '', ''].join('\r\n')
const ping = (...lines: string[]) => head('GET /v1/ping HTTP/1.1', ...lines)
const upload = (...lines: string[]) =>
  head('POST /v1/malware/scan/file HTTP/1.1', 'Content-Type: multipart/form-data; boundary=b', ...lines)
const formStart = '--b\r\nContent-Disposition: form-data; name="file"\r\n\r\nhello'
const chunk = (text: string) => `${text.length.toString(16)}\r\n${text}\r\n`

async function assertRefused(answer: RawAnswer, status: number, kind: ProblemKind, path = '') {
  await assertProblem({ ...answer, path }, { status, kind })
  assert.equal(answer.headers.connection, 'close')
  assert.doesNotMatch(answer.text, /\bat \S+:\d+|node_modules|\.ts\b|HPE_/, 'nothing internal is shown')
}

describe('bytes that are not HTTP get 400 with a problem, and the connection is closed', () => {
  const lengths = {
    'a length that is no number': () => upload('Content-Length: abc'),
    'a negative length': () => upload('Content-Length: -1'),
    'an empty length': () => upload('Content-Length: '),
    'a length beyond 64 bits': () => upload('Content-Length: 99999999999999999999'),
    'two different lengths': () => `${upload('Content-Length: 3', 'Content-Length: 4')}abcd`,
    'a list of lengths': () => `${upload('Content-Length: 3, 3')}abc`,
    'a length and chunks': () => `${upload('Content-Length: 3', 'Transfer-Encoding: chunked')}${chunk('abc')}0\r\n\r\n`,
    'a transfer encoding we do not know': () => `${upload('Transfer-Encoding: gzip')}abc`,
    'chunked that is not the last encoding': () => `${upload('Transfer-Encoding: chunked, identity')}${chunk('abc')}`,
    'a first chunk size that is no number': () => `${upload('Transfer-Encoding: chunked')}zz\r\nabc\r\n`,
    'a chunk longer than its size': () => `${upload('Transfer-Encoding: chunked')}3\r\nabcdef\r\n0\r\n\r\n`,
    'a length in the trailers': () =>
      `${upload('Transfer-Encoding: chunked')}${chunk('abc')}0\r\nContent-Length: 3\r\n\r\n`,
    'a chunk size beyond 64 bits': () => `${upload('Transfer-Encoding: chunked')}${'f'.repeat(40)}\r\nabc`,
  }
  const others = {
    'a TLS handshake': () => Buffer.from('16030102000100', 'hex'),
    'text that is not a request': () => 'hello there\r\n\r\n',
    zeros: () => Buffer.alloc(2000),
    'the preface of HTTP/2': () => 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n',
    'a version that does not exist': () => head('GET /v1/ping HTTP/1.3'),
    'an unknown method': () => head('FOO /v1/ping HTTP/1.1'),
    'a method in lower case': () => head('get /v1/ping HTTP/1.1'),
    'a NUL in the path': () => head('GET /v1/pi\0ng HTTP/1.1'),
    'a NUL in a header': () => ping('X-Note: a\0b'),
    'bytes over 127 in the path': () => Buffer.from(head('GET /v1/p\xefng HTTP/1.1'), 'latin1'),
    'a header folded over two lines': () => ping('X-Note: a', ' b'),
    'a blank before the colon of a header': () => ping('X-Note : a'),
    'lines that end without a carriage return': () => ping().replaceAll('\r\n', '\n'),
  }
  for (const [what, make] of Object.entries({ ...lengths, ...others })) {
    test(what, async () => assertRefused(await sendRawOnce(service.url, make()), 400, 'malformed-request'))
  }

  test('a chunk that breaks in the middle of an upload', async () => {
    const connection = await openRaw(service.url)
    await connection.send(`${upload('Transfer-Encoding: chunked', 'Expect: 100-continue')}`)
    // 100 Continue shows that the upload is being read when it breaks.
    assert.equal((await connection.readAnswer()).status, 100)
    await connection.send(`${chunk(formStart)}nonsense\r\n`)
    const answers = await connection.readToEnd()
    assert.equal(answers.length, 1)
    await assertRefused(answers[0] as RawAnswer, 400, 'malformed-request')
  })

  test('garbage after a good request on the same connection', async () => {
    const connection = await openRaw(service.url)
    await connection.send(ping())
    assert.equal((await connection.readAnswer()).status, 200)
    await connection.send('garbage\r\n\r\n')
    const answers = await connection.readToEnd()
    assert.equal(answers.length, 1)
    await assertRefused(answers[0] as RawAnswer, 400, 'malformed-request')
  })
})

test('a body that breaks after its response gets no second response', async () => {
  const connection = await openRaw(service.url)
  await connection.send(`POST /v1/malware/scan/file HTTP/1.1\r\nHost: ${host}\r\nTransfer-Encoding: chunked\r\n\r\n`)
  assert.equal((await connection.readAnswer()).status, 401)
  await connection.send('nonsense\r\n')
  assert.deepEqual(await connection.readToEnd(), [])
})

describe('faults that Node accepts get 400 with a problem that names the path', () => {
  const cases = {
    'two Host headers': () => ping(`Host: ${host}`),
    'two Host headers that differ': () => ping('Host: other.example'),
    'no Host header in HTTP/1.1': () => `GET /v1/ping HTTP/1.1\r\nX-API-Key: ${key}\r\n\r\n`,
    'HTTP/0.9': () => 'GET /v1/ping\r\n\r\n',
    'HTTP/0.9 by name': () => head('GET /v1/ping HTTP/0.9'),
    'HTTP/2 in the request line': () => head('GET /v1/ping HTTP/2.0'),
    'an expectation other than 100-continue': () => ping('Expect: 200-ok'),
    'two expectations': () => ping('Expect: 100-continue, 200-ok'),
  }
  for (const [what, make] of Object.entries(cases)) {
    test(what, async () => assertRefused(await sendRawOnce(service.url, make()), 400, 'malformed-request', '/v1/ping'))
  }
})

test('HTTP/1.0 without a Host header is served, and the connection is closed', async () => {
  const answer = await sendRawOnce(service.url, `GET /v1/ping HTTP/1.0\r\nX-API-Key: ${key}\r\n\r\n`)
  assert.equal(answer.status, 200)
})

describe('headers over 32 KiB get 431', () => {
  const cases = {
    'one long header': () => ping(`X-Note: ${'a'.repeat(33 * 1024)}`),
    'a long request line': () => head(`GET /v1/ping?${'a'.repeat(33 * 1024)} HTTP/1.1`),
    'many short headers': () => ping(...Array(6000).fill('A: b')),
    'a header that never ends': () => `GET /v1/ping HTTP/1.1\r\nX-Note: ${'a'.repeat(200 * 1024)}`,
  }
  for (const [what, make] of Object.entries(cases)) {
    test(what, async () => assertRefused(await sendRawOnce(service.url, make()), 431, 'header-too-large'))
  }
})

test('headers just under 32 KiB, and a few hundred of them, are read', async () => {
  for (const lines of [[`X-Note: ${'a'.repeat(31 * 1024)}`], Array(500).fill('A: b')]) {
    assert.equal((await sendRawOnce(service.url, ping(...lines, 'Connection: close'))).status, 200)
  }
})

describe('unsupported methods', () => {
  for (const method of ['TRACE', 'OPTIONS', 'PUT', 'PATCH', 'DELETE', 'PROPFIND']) {
    test(`${method} gets 405 with the methods that are allowed, and is not echoed`, async () => {
      const request = head(`${method} /v1/ping HTTP/1.1`, 'X-Note: echo', 'Connection: close')
      const answer = await sendRawOnce(service.url, request)
      await assertRefused(answer, 405, 'method-not-allowed', '/v1/ping')
      assert.equal(answer.headers.allow, 'GET, HEAD')
      assert.doesNotMatch(answer.text, /echo/)
    })
  }

  test('CONNECT gets 405 and no tunnel', async () => {
    const answer = await sendRawOnce(service.url, head('CONNECT example.com:443 HTTP/1.1'), 'through the tunnel')
    await assertRefused(answer, 405, 'method-not-allowed', 'example.com:443')
    assert.equal(answer.headers.allow, 'GET, HEAD, POST')
  })

  test('a client that resets its CONNECT does not end the service', async () => {
    for (let i = 0; i < 20; i++) {
      const connection = await openRaw(service.url)
      await connection.send(head('CONNECT example.com:443 HTTP/1.1'))
      await connection.send(Buffer.alloc(100_000))
      connection.reset()
    }
    await assertRefused(await sendRawOnce(service.url, 'garbage\r\n\r\n'), 400, 'malformed-request')
  })

  test('OPTIONS of the whole server gets 404', async () => {
    const answer = await sendRawOnce(service.url, head('OPTIONS * HTTP/1.1', 'Connection: close'))
    await assertRefused(answer, 404, 'not-found', '/*')
  })
})

test('an absolute URL in the request line is served as its path', async () => {
  const absolute = (path: string) => head(`GET http://${host}${path} HTTP/1.1`, 'Connection: close')
  assert.equal((await sendRawOnce(service.url, absolute('/v1/ping'))).status, 200)
  await assertRefused(await sendRawOnce(service.url, absolute('/v1/nothing?x=1')), 404, 'not-found', '/v1/nothing')
  await assertRefused(await sendRawOnce(service.url, absolute('//v1/ping')), 404, 'not-found', '//v1/ping')
})

test('an upgrade of the connection is ignored', async () => {
  for (const protocol of ['websocket', 'h2c']) {
    const connection = await openRaw(service.url)
    await connection.send(ping(`Upgrade: ${protocol}`, 'Connection: Upgrade'))
    assert.equal((await connection.readAnswer()).status, 200)
    connection.leave()
  }
})

test('pipelined requests are answered in order, refused ones included', async () => {
  const missing = head('GET /v1/nothing HTTP/1.1')
  const requests = [ping(), missing, ping('X-API-Key: another'), ping(), ping('Connection: close')]
  const answers = await sendRaw(service.url, requests.join(''))
  assert.deepEqual(toStatuses(answers), [200, 404, 401, 200, 200])
})

const toForm = (content: string) =>
  `--b\r\nContent-Disposition: form-data; name="file"; filename="a"\r\n\r\n${content}\r\n--b--`
const toLength = ({ text }: RawAnswer) => (JSON.parse(text) as { content_length: number }).content_length

test('uploads that are pipelined are answered in order, each with the result of its own content', async () => {
  const contents = ['first', 'the second']
  const requests = contents.map((content, n) => {
    const form = toForm(content)
    return `${upload(`Content-Length: ${form.length}`, ...(n === 1 ? ['Connection: close'] : []))}${form}`
  })
  const answers = await sendRaw(service.url, requests.join(''))
  assert.deepEqual(toStatuses(answers), [201, 201])
  assert.deepEqual(answers.map(toLength), [5, 10])
})

test('a chunked upload may end with trailers, which replace no header', async () => {
  const trailers = 'X-API-Key: another\r\nContent-Type: text/plain\r\nX-Note: a\r\n'
  const body = `${chunk(toForm('hel'))}0\r\n${trailers}\r\n`
  const connection = await openRaw(service.url)
  await connection.send(`${upload('Transfer-Encoding: chunked', 'Trailer: X-Note')}${body}`)
  const answer = await connection.readAnswer()
  assert.equal(answer.status, 201, answer.text)
  assert.equal(toLength(answer), 3)
  await connection.send(ping())
  assert.equal((await connection.readAnswer()).status, 200, 'the next request begins behind the trailers')
  connection.leave()
})

test('a length one less than the body cuts the form, and the last byte is no request', async () => {
  const form = toForm('hello')
  const answers = await sendRaw(service.url, `${upload(`Content-Length: ${form.length - 1}`)}${form}`)
  assert.equal(answers.length, 1)
  await assertRefused(answers[0] as RawAnswer, 400, 'malformed-request')
})

test('a length that leaves out only the last line feed changes neither the form nor the next request', async () => {
  const form = `${toForm('hello')}\r\n`
  const requests = [upload(`Content-Length: ${form.length - 1}`), form, ping('Connection: close')]
  assert.deepEqual(toStatuses(await sendRaw(service.url, requests.join(''))), [201, 200])
})

test('a request that arrives byte by byte is served', async () => {
  const answer = await sendRawOnce(service.url, ...ping('Connection: close'))
  assert.equal(answer.status, 200)
})
