import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { before, describe, test } from 'node:test'
import { adminRoutes } from '@assay/contract/admin'
import { openAccount, type Visitor } from '../support/console.ts'
import { assertProblem } from '../support/problems.ts'
import { getSharedService } from '../support/shared-service.ts'

const { admin, url } = getSharedService()
const validation = (...errors: string[]) => ({ status: 422, kind: 'validation' as const, errors })

describe('the admin API rejects', () => {
  let owner: Visitor
  let account = ''
  before(async () => {
    const opened = await openAccount(admin)
    owner = opened.owner
    account = opened.account.id
  })

  test('forms with missing or invalid fields, with a message for each', async () => {
    const forms: [Visitor, string, string, object, string[]][] = [
      [owner, 'POST', '/keys', {}, ['name']],
      [owner, 'POST', '/keys', { name: '' }, ['name']],
      [owner, 'POST', '/keys', { name: '  ' }, ['name']],
      [owner, 'POST', '/keys', { name: 'x'.repeat(201) }, ['name']],
      [owner, 'POST', '/keys', { name: ['a'], is_test: 'yes' }, ['name', 'is_test']],
      [owner, 'POST', '/keys', { name: 'a', expires_at: 'tomorrow' }, ['expires_at']],
      [owner, 'POST', '/keys', { name: 'a', expires_at: '2020-01-01T00:00:00Z' }, ['expires_at']],
      [
        owner,
        'POST',
        '/keys',
        { name: 'a', allow: ['write'], kinds: 'malware', networks: [] },
        ['allow', 'kinds', 'networks'],
      ],
      [owner, 'POST', '/keys', { name: 'a', allow: [], networks: ['10.0.0.0/33', '::1'] }, ['allow']],
      [owner, 'POST', '/keys', { name: 'a', networks: ['10.0.0.0/33', '::1'] }, ['networks']],
      [owner, 'POST', `/keys/${randomUUID()}/rotate`, { overlap_hours: -1 }, ['overlap_hours']],
      [owner, 'POST', `/keys/${randomUUID()}/rotate`, { overlap_hours: 721 }, ['overlap_hours']],
      [owner, 'POST', `/keys/${randomUUID()}/rotate`, { overlap_hours: 1.5 }, ['overlap_hours']],
      [owner, 'POST', '/webhooks/test', { url: 'ftp://example.com/' }, ['url']],
      [owner, 'POST', '/webhooks/test', { url: 'http://127.0.0.1/' }, ['url']],
      [owner, 'POST', '/webhooks/test', { url: 'http://169.254.169.254/latest' }, ['url']],
      [owner, 'POST', '/deliveries/replay-failed', { since: 'yesterday' }, ['since']],
      [owner, 'POST', '/members', { role: 'operator', email: 'ada@example.com' }, ['role']],
      [owner, 'POST', '/members', { role: 'member' }, ['email']],
      [owner, 'POST', '/members', { role: 'member', email: 'no address' }, ['email']],
      [owner, 'PUT', '/password', { current: 'x', next: 'short' }, ['next']],
      [owner, 'PUT', '/totp', { code: '12345' }, ['code']],
      [admin.token, 'POST', '/operator/accounts', { name: 'x', plan: 'none such' }, ['plan']],
      [admin.token, 'POST', '/operator/accounts', { name: 'x', plan: 'free', credits: -1 }, ['credits']],
      [admin.token, 'POST', '/operator/accounts', { name: 'x', plan: 'free', rate: '1' }, ['rate']],
      [admin.token, 'PATCH', `/operator/accounts/${account}`, { suspended: 'yes', flags_sexy: 1 }, both],
      [admin.token, 'POST', `/operator/accounts/${account}/credits`, { amount: 0, note: '' }, ['amount', 'note']],
      [admin.token, 'POST', `/operator/accounts/${account}/credits`, { amount: 1e12, note: 'x' }, ['amount']],
      [admin.token, 'PUT', '/operator/plans/x', { credits_per_period: '1', rate: '1/1m' }, ['credits_per_period']],
      [
        admin.token,
        'POST',
        '/operator/lists',
        { list: 'allow', matches: 'sha256', value: 'x', reason: 'y' },
        ['value'],
      ],
      [admin.token, 'POST', '/operator/lists', { list: 'grey', matches: 'name', value: 'x', reason: 'y' }, two],
      [admin.token, 'POST', '/operator/lists', { ...signal, expires_at: '2020-01-01T00:00:00Z' }, ['expires_at']],
    ]
    for (const [who, method, path, body, fields] of forms) {
      const about = `${method} ${path} ${JSON.stringify(body)}`
      await assertProblem(await admin.send(who, method, path, { body }), validation(...fields), about)
    }
  })

  test('page sizes that are too large, and invalid filters', async () => {
    const lists: [Visitor, string][] = [
      [owner, '/scans'],
      [owner, '/deliveries'],
      [admin.token, '/operator/jobs'],
      [admin.token, '/operator/audit'],
    ]
    for (const [who, path] of lists) {
      for (const limit of ['0', '101', '1000', '-1', '1e2', '5.0', 'all', '', '99999999999999999999']) {
        const answer = await admin.send(who, 'GET', `${path}?limit=${limit}`)
        await assertProblem(answer, validation('limit'), `${path} ${limit}`)
      }
      await assertProblem(await admin.send(who, 'GET', `${path}?limit=1&limit=2`), validation('limit'), path)
      await assertProblem(await admin.send(who, 'GET', `${path}?cursor=${'x'.repeat(201)}`), validation('cursor'), path)
      // An invalid cursor starts at the first page.
      for (const cursor of [
        'garbage',
        "';drop table scans;--",
        '-1',
        '9999999999999999999',
        randomUUID(),
        '%ff',
        '../..',
      ]) {
        const answer = await admin.send(who, 'GET', `${path}?limit=2&cursor=${cursor}`)
        assert.equal(answer.status, 200, `${path} ${cursor}: ${answer.text}`)
        assert(JSON.parse(answer.text).items.length <= 2)
      }
    }
    for (const filter of [
      'status=bad',
      'format=xml',
      'kind=x',
      'key=x',
      'from=2027-13-01',
      'to=yesterday',
      'hash=abc',
    ]) {
      const answer = await admin.send(owner, 'GET', `/scans?${filter}`)
      await assertProblem(answer, validation(filter.split('=')[0] ?? ''), filter)
      await assertProblem(
        await admin.send(owner, 'GET', `/scans?format=csv&${filter}`),
        validation(filter.split('=')[0] ?? ''),
      )
    }
  })

  test('bodies that are not JSON objects', async () => {
    const send = (body: string | Buffer, type: string | undefined = 'application/json') =>
      admin.send(owner, 'POST', '/keys', { body, headers: { 'content-type': type } })
    const unsupported = { status: 415, kind: 'unsupported-media-type' as const }
    for (const type of ['text/plain', 'application/x-www-form-urlencoded', 'multipart/form-data; boundary=x', 'x']) {
      await assertProblem(await send('{"name":"a"}', type), unsupported, type)
    }
    await assertProblem(
      await admin.send(owner, 'POST', '/keys', { body: '{"name":"a"}', headers: { 'content-encoding': 'gzip' } }),
      unsupported,
    )
    const malformed = { status: 400, kind: 'malformed-request' as const }
    for (const body of ['', '{', 'name=a', '{"name":"a"}}', Buffer.from([0x22, 0xff, 0x22]), '['.repeat(1000)]) {
      await assertProblem(await send(body), malformed, String(body))
    }
    for (const body of ['null', '1', '"name"', '[]', '[{"name":"a"}]'] as const) {
      await assertProblem(await send(body), validation('name'), body)
    }
    const large = JSON.stringify({ name: 'x'.repeat(70_000) })
    const tooLarge = { status: 413, kind: 'content-too-large' as const }
    await assertProblem(await send(large), tooLarge)
    await assertProblem(await admin.send(admin.token, 'POST', '/session', { body: large }), tooLarge)
  })

  test('prototype pollution, and NUL characters', async () => {
    const polluted = await admin.send(owner, 'POST', '/keys', { body: '{"__proto__":{"name":"a"},"name":"a"}' })
    await assertProblem(polluted, { status: 400, kind: 'malformed-request' })
    await assertProblem(
      await admin.send(owner, 'POST', '/keys', { body: '{"constructor":{"prototype":{"name":"a"}}}' }),
      validation('name'),
    )
    assert.equal(({} as { name?: string }).name, undefined)
    const withNul = 'a\u0000b'
    const forms: [Visitor, string, string, object, string][] = [
      [owner, 'POST', '/keys', { name: withNul }, 'name'],
      [owner, 'POST', `/keys/${randomUUID()}/revoke`, { name: withNul }, 'name'],
      [admin.token, 'POST', '/operator/accounts', { name: withNul, plan: 'free' }, 'name'],
      [admin.token, 'POST', '/operator/accounts', { name: 'x', plan: withNul }, 'plan'],
      [admin.token, 'POST', `/operator/accounts/${account}/credits`, { amount: 1, note: withNul }, 'note'],
      [admin.token, 'POST', '/operator/lists', { ...signal, value: `Virus:${withNul}` }, 'value'],
      [admin.token, 'POST', '/operator/lists', { ...signal, reason: withNul }, 'reason'],
      [admin.token, 'POST', '/operator/deliveries/pause', { host: withNul, paused: true }, 'host'],
    ]
    for (const [who, method, path, body, field] of forms) {
      await assertProblem(await admin.send(who, method, path, { body }), validation(field), path)
    }
    await assertProblem(await admin.send(admin.token, 'GET', '/operator/audit?action=%00'), validation('action'))
    for (const path of ['/operator/plans/%00', '/operator/plans/a%00b']) {
      const body = { credits_per_period: 1, rate: '1/1m' }
      const answer = await admin.send(admin.token, 'PUT', path, { body })
      assert([404, 422].includes(answer.status), `${path}: ${answer.status} ${answer.text}`)
    }
  })

  test('invalid ids in every route with an id', async () => {
    const routes = Object.values(adminRoutes).filter(({ path }) => path.includes('{id}'))
    assert(routes.length > 10)
    const bodies: Record<string, object> = {
      '/alerts/{id}': { topics: ['credits'] },
      '/operator/alerts/{id}': { topics: ['disk'] },
      '/keys/{id}/restrict': { allow: null, kinds: null, networks: null },
      '/keys/{id}/rotate': { overlap_hours: 0 },
      '/keys/{id}/revoke': { name: 'a' },
      '/operator/accounts/{id}': { suspended: false },
      '/operator/accounts/{id}/credits': { amount: 1, note: 'a' },
      '/operator/accounts/{id}/downloads': { host: 'a.example.com', headers: [{ name: 'A', value: 'b' }] },
      '/operator/accounts/{id}/invitation': { email: 'ada@example.com' },
      '/operator/operators/{id}/suspend': { suspended: true },
    }
    for (const { method, path } of routes) {
      const who = path.startsWith('/operator/') ? admin.token : owner
      for (const id of ['x', '..%2f..', "'or'1'='1", '%00', randomUUID(), '-'.repeat(36), 'a'.repeat(5000)]) {
        const body = method === 'GET' ? undefined : bodies[path]
        const answer = await admin.send(who, method, path.replace('{id}', id), body === undefined ? {} : { body })
        const isEmptyList = method === 'GET' && path.endsWith('/ledger') && answer.text === '[]'
        // A job that does not exist is not delayed either, which is a conflict.
        const expected = path === '/operator/jobs/{id}/retry' ? [404, 409] : [404]
        assert(
          expected.includes(answer.status) || isEmptyList,
          `${method} ${path} ${id}: ${answer.status} ${answer.text}`,
        )
      }
    }
  })

  test('requests of other sites, with no CORS headers and no caching', async () => {
    const headers = { origin: 'https://evil.example', ...owner }
    const answer = await fetch(`${url}/admin/v1/session`, { headers })
    assert.equal(answer.status, 200)
    assert.equal(answer.headers.get('access-control-allow-origin'), null)
    assert.equal(answer.headers.get('cache-control'), 'no-store')
    assert.equal(answer.headers.get('x-content-type-options'), 'nosniff')
  })
})

const both = ['suspended', 'flags_sexy']
const two = ['list', 'matches']
const signal = { list: 'allow', matches: 'signal', value: 'Virus:Harmless', reason: 'tested' }
