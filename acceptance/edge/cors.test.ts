import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { headers } from '@assay/contract'
import { sendTo } from '../support/http.ts'
import { getSharedService } from '../support/shared-service.ts'
import { type Service, startService } from '../support/start-service.ts'

const preflight = { 'access-control-request-method': 'POST', 'access-control-request-headers': 'x-api-key' }
const grants = (answer: { headers: object }) =>
  Object.keys(answer.headers).filter((name) => name.startsWith('access-control-'))

test('without ASSAY_CORS_ORIGINS no page of another origin may call the interface', async () => {
  const { url } = getSharedService()
  const origin = 'https://app.example.com'
  const get = await sendTo(url, { method: 'GET', path: '/v1/ping', headers: { origin } })
  assert.deepEqual(grants(get), [])
  const asked = await sendTo(url, { method: 'OPTIONS', path: '/v1/ping', headers: { origin, ...preflight } })
  assert.equal(asked.status, 405)
  assert.deepEqual(grants(asked), [])
})

describe('with ASSAY_CORS_ORIGINS', () => {
  const allowed = ['https://app.example.com', 'http://localhost:5173']
  let service: Service
  before(async () => {
    // Nothing is scanned here, so the service needs no engine.
    service = await startService({ ASSAY_CORS_ORIGINS: allowed.join(', ') }, 'kept', { options: ['--test'] })
  })
  after(() => service.stop())
  const ask = (method: string, path: string, more: Record<string, string>) =>
    sendTo(service.url, { method, path, headers: more })

  test('a page of an allowed origin may send a key and a body after a preflight', async () => {
    for (const origin of allowed) {
      for (const path of ['/v1/malware/scan/file', '/v1/me']) {
        const answer = await ask('OPTIONS', path, { origin, ...preflight })
        assert.equal(answer.status, 204, path)
        assert.equal(answer.headers['access-control-allow-origin'], origin)
        assert.match(String(answer.headers['access-control-allow-methods']), /GET.*POST/)
        const names = String(answer.headers['access-control-allow-headers']).toLowerCase()
        for (const name of ['x-api-key', 'idempotency-key', 'x-assay-test', 'content-type'])
          assert(names.includes(name), name)
        assert.match(String(answer.headers.vary), /origin/i)
      }
    }
  })

  test('a page of an allowed origin may read responses and their headers, errors included', async () => {
    const [origin = ''] = allowed
    for (const key of [service.apiKey, 'wrong']) {
      const answer = await ask('GET', '/v1/ping', { origin, 'x-api-key': key })
      assert.equal(answer.status, key === 'wrong' ? 401 : 200)
      assert.equal(answer.headers['access-control-allow-origin'], origin)
      const exposed = String(answer.headers['access-control-expose-headers']).toLowerCase().split(/, */)
      const { apiKey: _sent, idempotencyKey: _sentToo, test: _asWell, region: _ours, ...received } = headers
      for (const name of Object.values(received)) assert(exposed.includes(name.toLowerCase()), name)
      assert.match(String(answer.headers.vary), /origin/i)
    }
    const missing = await ask('GET', '/v1/nothing', { origin })
    assert.equal(missing.status, 404)
    assert.equal(missing.headers['access-control-allow-origin'], origin)
  })

  test('similar origins are not allowed', async () => {
    const others = `https://app.example.com.evil.example https://evil-app.example.com http://app.example.com
      https://app.example.com:444 http://localhost null https://APP.example.com.`.split(/\s+/)
    for (const origin of others) {
      const asked = await ask('OPTIONS', '/v1/me', { origin, ...preflight })
      assert.equal(asked.headers['access-control-allow-origin'], undefined, origin)
      const answer = await ask('GET', '/v1/ping', { origin, 'x-api-key': service.apiKey })
      assert.equal(answer.headers['access-control-allow-origin'], undefined, origin)
    }
  })

  test('credentials are never allowed', async () => {
    const answer = await ask('OPTIONS', '/v1/me', { origin: allowed[0] ?? '', ...preflight })
    assert.equal(answer.headers['access-control-allow-credentials'], undefined)
  })

  test('OPTIONS that is not a preflight gets 405', async () => {
    const answer = await ask('OPTIONS', '/v1/ping', {})
    assert.equal(answer.status, 405)
    assert.equal(answer.headers.allow, 'GET, HEAD')
  })
})
