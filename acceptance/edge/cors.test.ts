import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { headers } from '@assay/contract'
import { sendTo } from '../support/http.ts'
import { getSharedService } from '../support/shared-service.ts'
import { type Service, startService, withoutImages } from '../support/start-service.ts'

const preflight = { 'access-control-request-method': 'POST', 'access-control-request-headers': 'x-api-key' }
const grants = (answer: { headers: object }) =>
  Object.keys(answer.headers).filter((name) => name.startsWith('access-control-'))

test('without origins set no browser page of another host may call the interface', async () => {
  const { url } = getSharedService()
  const origin = 'https://app.example.com'
  const get = await sendTo(url, { method: 'GET', path: '/v1/ping', headers: { origin } })
  assert.deepEqual(grants(get), [])
  const asked = await sendTo(url, { method: 'OPTIONS', path: '/v1/ping', headers: { origin, ...preflight } })
  assert.equal(asked.status, 405)
  assert.deepEqual(grants(asked), [])
})

describe('with origins set', () => {
  const allowed = ['https://app.example.com', 'http://localhost:5173']
  let service: Service
  before(async () => {
    service = await startService({ ...withoutImages, ASSAY_CORS_ORIGINS: allowed.join(', ') })
  })
  after(() => service.stop())
  const ask = (method: string, path: string, more: Record<string, string>) =>
    sendTo(service.url, { method, path, headers: more })

  test('a page of such an origin may ask first and then send a key and a body', async () => {
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

  test('its answers may be read with the headers of the interface, refusals too', async () => {
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

  test('no other origin is let in, however alike', async () => {
    const others = ['https://app.example.com.evil.example', 'https://evil-app.example.com', 'http://app.example.com']
    for (const origin of [
      ...others,
      'https://app.example.com:444',
      'http://localhost',
      'null',
      'https://APP.example.com.',
    ]) {
      const asked = await ask('OPTIONS', '/v1/me', { origin, ...preflight })
      assert.equal(asked.headers['access-control-allow-origin'], undefined, origin)
      const answer = await ask('GET', '/v1/ping', { origin, 'x-api-key': service.apiKey })
      assert.equal(answer.headers['access-control-allow-origin'], undefined, origin)
    }
  })

  test('cookies are never invited', async () => {
    const answer = await ask('OPTIONS', '/v1/me', { origin: allowed[0] ?? '', ...preflight })
    assert.equal(answer.headers['access-control-allow-credentials'], undefined)
  })

  test('OPTIONS that asks for nothing gets what it gets without origins', async () => {
    const answer = await ask('OPTIONS', '/v1/ping', {})
    assert.equal(answer.status, 405)
    assert.equal(answer.headers.allow, 'GET, HEAD')
  })
})
