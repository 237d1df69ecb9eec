import assert from 'node:assert/strict'
import { METHODS } from 'node:http'
import { before, describe, test } from 'node:test'
import { operations } from '@assay/contract'
import { adminPath, adminRoutes } from '@assay/contract/admin'
import { sendTo } from '../support/http.ts'
import { assertProblem } from '../support/problems.ts'
import { openRaw, sendRawOnce } from '../support/raw-socket.ts'
import { getSharedService } from '../support/shared-service.ts'

const service = getSharedService()
const id = '00000000-0000-4000-8000-000000000000'
let key = ''
before(async () => {
  key = (await service.createAccount()).api_key
})

/** Sends the path exactly as it is written; a URL parser would normalize it. */
async function ask(path: string, method = 'GET') {
  const { host } = new URL(service.url)
  const lines = [`${method} ${path} HTTP/1.1`, `Host: ${host}`, `X-API-Key: ${key}`, 'Connection: close']
  const answer = await sendRawOnce(service.url, [...lines, 'Content-Length: 0', '', ''].join('\r\n'))
  assert.equal(answer.headers.location, undefined, 'no redirects')
  assert.equal(answer.headers['set-cookie'], undefined, 'no cookies')
  return { ...answer, path }
}

const assertNotFound = async (path: string, method?: string) =>
  assertProblem(await ask(path, method), { status: 404, kind: 'not-found' })

test('a path that is not in the interface gets 404, with and without a key', async () => {
  const paths = `/ /reference/nothing /v1 /v1/ /v2/ping /ping /v1/malware /v1/malware/ /v1/nsfw/images /v1/nsfw
    /v1/malware/${id}/more /v1/malware/scan/file/more /v1/ping;x=1 /v1/ping%20`
  for (const path of paths.split(/\s+/)) {
    await assertNotFound(path)
    await assertNotFound(path, 'POST')
    const answer = await sendTo(service.url, { method: 'GET', path })
    await assertProblem(answer, { status: 404, kind: 'not-found' })
  }
})

describe('a path that a proxy may normalize to another one gets 404', () => {
  const tricks = {
    'doubled slashes': `//v1/ping /v1//ping /v1/ping// // /v1/malware//${id}`,
    dots: '/v1/./ping /v1/../v1/ping /v1/ping/. /v1/ping/.. /v1/malware/. /v1/malware/.. /../v1/ping',
    'encoded dots': '/v1/%2e/ping /v1/%2E%2e/v1/ping /v1/malware/%2e /v1/malware/.%2E /v1/%2e%2e/%2e%2e/ping',
    'encoded slashes': `/v1%2fping /v1/ping%2F /v1/malware/%2f /v1/malware/scan%2Ffile /v1/malware/x%2f${id}`,
    backslashes: '/v1\\ping /v1/malware/..\\ping /v1/malware/%5c /v1/malware/%5C..',
    'broken encodings': '/v1/ping% /v1/ping%zz /v1/malware/% /v1/malware/%4 /v1/malware/%zz',
    'encodings that are not UTF-8': '/v1/malware/%ff /v1/malware/%c0%af /v1/malware/%ed%a0%80',
    'encoded NUL': '/v1/ping%00 /v1/%00/ping /livez%00',
  }
  for (const [what, paths] of Object.entries(tricks)) {
    test(what, async () => {
      for (const path of paths.split(' ')) {
        await assertNotFound(path)
        await assertNotFound(path, 'POST')
      }
    })
  }
})

test('the query does not affect the path', async () => {
  for (const query of ['?x=/../', '?%2e%2e//', '?%', '?', '?x=%zz', '#/../']) {
    assert.equal((await ask(`/v1/ping${query}`)).status, 200, query)
  }
})

test('a trailing slash and letter case are ignored', async () => {
  for (const path of ['/v1/ping/', '/V1/PING', '/v1/Ping/?x=1', '/V1/me/', '/livez/', '/OpenAPI.json']) {
    assert.equal((await ask(path)).status, 200, path)
  }
  for (const path of [`/v1/malware/${id}/`, `/V1/Malware/${id.toUpperCase()}`, `/v1/NSFW/images/${id}/`]) {
    await assertProblem(await ask(path), { status: 422, kind: 'validation', errors: ['id'] })
  }
  await assertProblem(await ask('/V1/Malware/Scan/File/', 'POST'), { status: 415, kind: 'unsupported-media-type' })
})

test('a known path with another method gets 405 with the allowed methods, before the key is checked', async () => {
  for (const operation of operations) {
    const path = operation.path.replace('{id}', id)
    const others = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE'].filter((method) => method !== operation.method)
    for (const method of others) {
      const answer = await sendTo(service.url, { method, path })
      await assertProblem(answer, { status: 405, kind: 'method-not-allowed' }, `${method} ${path}`)
      assert.equal(answer.headers.allow, operation.method === 'GET' ? 'GET, HEAD' : 'POST')
    }
  }
})

test('no method that Node knows gets an internal error, on any path, with or without a body', async () => {
  const fixed = ['/', '/livez', '/openapi.json', '/reference', '/console', '/problems/internal', '/nothing']
  const routes = [
    ...Object.values(adminRoutes).map(({ path }) => adminPath + path),
    ...operations.map(({ path }) => path),
  ]
  const paths = [...fixed, ...routes.map((path) => path.replaceAll(/\{\w+\}/g, id))]
  const bodies = ['', 'Content-Type: application/json', 'Content-Type: nonsense'].map((line) =>
    [line, 'Content-Length: 2', '', '{}'].filter((text, index) => index > 0 || text !== '').join('\r\n'),
  )
  for (const [index, method] of METHODS.entries()) {
    if (method === 'CONNECT') continue
    const requests = paths.map((path, place) => {
      const more = ['\r\n', ...bodies][(index + place) % 4]
      return `${method} ${path} HTTP/1.1\r\nHost: ${new URL(service.url).host}\r\nX-API-Key: ${key}\r\n${more}`
    })
    const connection = await openRaw(service.url)
    for (const request of requests) {
      await connection.send(request)
      const { status } = await connection.readAnswer(method === 'HEAD')
      assert(status < 500, `${request} got ${status}`)
    }
    connection.leave()
  }
})

test('405 applies to paths in other letter case and with a trailing slash', async () => {
  const answer = await ask('/V1/ME/', 'DELETE')
  await assertProblem(answer, { status: 405, kind: 'method-not-allowed' })
  assert.equal(answer.headers.allow, 'GET, HEAD')
})

test('HEAD gets the headers of GET without the body', async () => {
  for (const path of ['/v1/ping', '/v1/me', `/v1/malware/${id}`, '/livez', '/openapi.json', '/reference', '/nothing']) {
    const [get, head] = [
      await sendTo(service.url, { method: 'GET', path, headers: { 'x-api-key': key } }),
      await sendTo(service.url, { method: 'HEAD', path, headers: { 'x-api-key': key, 'content-length': undefined } }),
    ]
    assert.equal(head.status, get.status, path)
    assert.equal(head.text, '')
    for (const name of ['content-type', 'content-length', 'x-api-credit-limit', 'x-rate-limit-limit']) {
      assert.equal(head.headers[name], get.headers[name], `${name} of ${path}`)
    }
  }
  assert.equal((await sendTo(service.url, { method: 'HEAD', path: '/v1/ping' })).status, 401)
})

test('HEAD of a path that only allows POST gets 405', async () => {
  const answer = await sendTo(service.url, { method: 'HEAD', path: '/v1/malware/scan/file' })
  assert.equal(answer.status, 405)
  assert.equal(answer.headers.allow, 'POST')
})

test('an id of any length or form gets 422, never an internal error', async () => {
  const ids = `x scan ... :id * constructor __proto__ ${'a'.repeat(200)} ${'a'.repeat(31_000)} %0a %00 ${id}%00 %F0%9F%90%98`
  for (const odd of ids.split(' ')) {
    for (const root of ['/v1/malware', '/v1/nsfw/images']) {
      await assertProblem(await ask(`${root}/${odd}`), { status: 422, kind: 'validation', errors: ['id'] })
    }
  }
})

test('the link of a problem has the host of the request, or no host of it if it is not valid', async () => {
  const seen = async (host: string) => {
    const answer = await sendTo(service.url, { method: 'GET', path: '/v1/nothing', headers: { host } })
    assert.equal(answer.status, 404)
    return JSON.parse(answer.text).type as string
  }
  assert.equal(await seen('scan.example.com'), 'http://scan.example.com/problems/not-found')
  for (const host of ['evil.example/path?', 'a"b', '<script>', 'a'.repeat(300)]) {
    assert.equal(await seen(host), `${service.url}/problems/not-found`, host)
  }
})
