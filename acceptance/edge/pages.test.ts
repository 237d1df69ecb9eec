import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { before, describe, test } from 'node:test'
import { headers, operations, problemKinds, webhookHeaders } from '@assay/contract'
import { adminPath, adminRoutes } from '@assay/contract/admin'
import { Validator } from '@seriousme/openapi-schema-validator'
import { sendAndHangUp, sendTo } from '../support/http.ts'
import { Check } from '../support/schema-check.ts'
import { getSharedService } from '../support/shared-service.ts'
import { waitUntil } from '../support/wait-until.ts'

const service = getSharedService()
const get = (path: string) => sendTo(service.url, { method: 'GET', path })

type Media = { schema: { $ref: string }; example?: unknown }
type Response = { description: string; headers?: Record<string, unknown>; content?: Record<string, Media> }
type Described = { operationId: string; responses: Record<string, Response>; requestBody?: Response }
type Document = {
  openapi: string
  servers: { url: string }[]
  paths: Record<string, Record<string, Described>>
  webhooks: Record<string, { post: Described & { parameters: { name: string }[] } }>
  components: { schemas: Record<string, object> }
}

describe('/openapi.json', () => {
  let document: Document
  before(async () => {
    document = JSON.parse((await get('/openapi.json')).text)
  })
  const find = (id: string): Described => {
    const all = Object.values(document.paths).flatMap((path) => Object.values(path))
    const found = all.find(({ operationId }) => operationId === id)
    assert(found, id)
    return found
  }

  /** Replaces each reference by the schema that it names. */
  const resolve = (schema: object): object =>
    JSON.parse(JSON.stringify(schema), (_key, value) => {
      if (typeof value?.$ref !== 'string') return value
      const named = document.components.schemas[value.$ref.replace('#/components/schemas/', '')]
      assert(named, value.$ref)
      return resolve(named)
    })

  test('is a valid OpenAPI 3.1 document', async () => {
    assert.match(document.openapi, /^3\.1\./)
    const { valid, errors } = await new Validator().validate(structuredClone(document))
    assert(valid, JSON.stringify(errors))
  })

  test('has this service as its server', () => {
    assert.deepEqual(document.servers, [{ url: service.url }])
  })

  test('describes every operation of the interface and of the admin API at its path, and no other', () => {
    const described = Object.entries(document.paths).flatMap(([path, methods]) =>
      Object.entries(methods).map(([method, { operationId }]) => `${operationId} ${method.toUpperCase()} ${path}`),
    )
    const wanted = operations.map(({ id, method, path }) => `${id} ${method} ${path}`)
    const admin = Object.entries(adminRoutes).map(
      ([name, { method, path }]) => `admin_${name} ${method} ${adminPath}${path}`,
    )
    assert.deepEqual(described.sort(), [...wanted, ...admin].sort())
  })

  test('has the responses that all operations share', () => {
    for (const { id } of operations) {
      const { responses } = find(id)
      for (const status of ['401', '403', '429', '500']) assert(responses[status], `${status} of ${id}`)
      assert.equal(responses['401']?.content, undefined, 'a 401 has no body')
      // Without credits a 403 has no body; for a restricted key it has the reason.
      assert(responses['403']?.content?.['application/problem+json'], `403 of ${id}`)
      assert(responses['429']?.headers?.[headers.retryAfter], `Retry-After of ${id}`)
      assert.equal(responses['429']?.headers?.[headers.rateRemaining], undefined)
    }
  })

  test('has the responses and bodies of each kind of operation', () => {
    for (const operation of operations) {
      const { responses, requestBody } = find(operation.id)
      const statuses = Object.keys(responses)
      if (operation.does === 'file' || operation.does === 'url') {
        for (const status of ['400', '415', '422']) assert(statuses.includes(status), `${status} of ${operation.id}`)
        const type = operation.does === 'file' ? 'multipart/form-data' : 'application/json'
        assert.deepEqual(Object.keys(requestBody?.content ?? {}), [type])
        assert(statuses.includes(operation.mode === 'sync' ? '201' : '202'))
        if (operation.mode === 'async') assert(responses['202']?.headers?.[headers.result])
      } else {
        assert(statuses.includes('200'))
        assert.equal(statuses.includes('422'), operation.does === 'result')
      }
    }
  })

  test('describes the webhook with the headers of both signatures, and the result as its body', () => {
    const { post } = document.webhooks.scanCompleted ?? assert.fail()
    assert.deepEqual(
      post.parameters.map(({ name }) => name),
      Object.values(webhookHeaders),
    )
    assert.deepEqual(post.requestBody?.content?.['application/json']?.schema, {
      $ref: '#/components/schemas/ScanResult',
    })
    const revised = document.webhooks.scanRevised?.post ?? assert.fail()
    assert.deepEqual(revised.parameters, post.parameters)
    assert.match(JSON.stringify(revised.requestBody), /ScanResult.*scan\.revised/)
  })

  test('has what client generators understand: maps, and a name for each enumeration', () => {
    const text = JSON.stringify(document)
    assert.doesNotMatch(text, /patternProperties/)
    const inResults = JSON.stringify([document.paths['/v1/me'], document.components.schemas.ScanResult])
    assert.doesNotMatch(inResults, /"enum"/)
    for (const name of ['JobType', 'ScanResultType', 'TestAnswer']) {
      assert(text.includes(`"$ref":"#/components/schemas/${name}"`), name)
    }
  })

  test('has only examples that match their schema', () => {
    const described = [
      ...operations.map(({ id }) => find(id)),
      ...Object.values(document.webhooks).map(({ post }) => post),
    ]
    const media = described.flatMap(({ operationId: id, responses, requestBody }) => {
      return [...Object.values(responses), ...(requestBody ? [requestBody] : [])].flatMap(({ content }) =>
        Object.values(content ?? {}).map((each) => ({ id, ...each })),
      )
    })
    const examples = media.filter(({ example }) => example !== undefined)
    assert(examples.length > operations.length)
    for (const { id, schema, example } of examples) {
      const resolved = resolve(schema)
      assert(Check(resolved, example), `${id}: ${JSON.stringify(example)}`)
    }
  })
})

test('the bare address leads a browser to the console, and programs nowhere', async () => {
  const open = (accept: string) => sendTo(service.url, { method: 'GET', path: '/', headers: { accept } })
  const page = await open('text/html,application/xhtml+xml;q=0.9')
  assert.deepEqual([page.status, page.headers.location], [302, '/console'])
  assert.equal((await open('*/*')).status, 404)
})

describe('/reference', () => {
  test('is served with and without a slash, without a redirect', async () => {
    for (const path of ['/reference', '/reference/', '/reference?x=1']) {
      const page = await get(path)
      assert.equal(page.status, 200, path)
      assert.match(page.headers['content-type'] ?? '', /^text\/html/)
      assert.equal(page.headers.location, undefined)
    }
  })

  test('loads its script and its document from this host', async () => {
    const { text } = await get('/reference')
    const scripts = [...text.matchAll(/<script[^>]*\ssrc="([^"]+)"/g)].map((found) => found[1] ?? '')
    assert.equal(scripts.length, 1)
    for (const path of scripts) {
      assert.match(path, /^\/(?!\/)/)
      const script = await get(path)
      assert.equal(script.status, 200)
      assert.match(script.headers['content-type'] ?? '', /javascript/)
      assert(script.text.length > 100_000)
    }
    assert.match(text, /"\/openapi\.json"/)
  })

  test('has no link to another host, and its content security policy forbids any', async () => {
    const { text, headers } = await get('/reference')
    assert.doesNotMatch(text, /https?:|["'(]\/\//)
    const policy = String(headers['content-security-policy'])
    assert.match(policy, /default-src 'none'/)
    assert.match(policy, /connect-src 'self'/)
    assert.doesNotMatch(policy, /https?:|\*/)
  })
})

test('every kind of problem has a page with its meaning and remedy, which loads nothing from other hosts', async () => {
  for (const [kind, { title, meaning, remedy }] of Object.entries(problemKinds)) {
    const page = await get(`/problems/${kind}`)
    assert.equal(page.status, 200, kind)
    assert.match(page.headers['content-type'] ?? '', /^text\/html/)
    for (const words of [title, meaning, remedy]) assert(page.text.includes(words), `${kind}: ${words}`)
    assert.doesNotMatch(page.text, /https?:|<script/)
    assert(page.headers['content-security-policy'])
  }
})

test('a kind of problem that does not exist has no page', async () => {
  for (const kind of ['nothing', '__proto__', 'constructor', 'toString', 'Validation', 'a'.repeat(5000)]) {
    assert.equal((await get(`/problems/${kind}`)).status, 404, kind)
  }
})

test('/livez needs no key', async () => {
  const answer = await get('/livez')
  assert.equal(answer.status, 200)
  assert.deepEqual(JSON.parse(answer.text), { status: 'alive' })
})

test('/readyz has a status, gives a reason for each fault, and is not cached', async () => {
  const answer = await get('/readyz')
  const { status, reasons, checks, region, version } = JSON.parse(answer.text)
  assert.equal(answer.status, status === 'unavailable' ? 503 : 200)
  assert.equal(answer.headers['cache-control'], 'no-store')
  assert.equal(checks.database, 'ok')
  const faults = Object.values(checks).filter((check) => check !== 'ok')
  assert.equal(reasons.length, faults.length)
  assert.equal(status, faults.length === 0 ? 'ready' : 'degraded')
  for (const reason of reasons) assert.match(reason, /^[A-Z].*\.$/)
  assert.match(region, /^[a-z]/)
  assert.match(version, /^\d+\.\d+\.\d+/)
})

describe('metrics', () => {
  const metrics = `http://127.0.0.1:${service.metricsPort}/metrics`

  test('count requests by operation and status, in the format of Prometheus', async () => {
    await get('/v1/ping')
    const counted = /^assay_http_request_duration_seconds_count\{.*operation="General\.Ping",status="401".*\} \d+$/m
    await waitUntil('the ping to be counted', async () => counted.test(await (await fetch(metrics)).text()))
    const answer = await fetch(metrics)
    assert.match(answer.headers.get('content-type') ?? '', /^text\/plain; version=0\.0\.4/)
    assert.match(await answer.text(), /^assay_info\{.*version="\d.*\} 1$/m)
  })

  test('are those that the documents, the dashboard and the alert rules name', async () => {
    const text = await (await fetch(metrics)).text()
    const served = new Set([...text.matchAll(/^# TYPE (\w+) /gm)].map(([, name]) => name ?? ''))
    const documents = readFileSync(new URL('../../docs/operating.md', import.meta.url), 'utf8')
    const documented = new Set([...documents.matchAll(/^\| `(assay_\w+)`/gm)].map(([, name]) => name ?? ''))
    assert.deepEqual(
      [...served].filter((name) => name.startsWith('assay_') && !documented.has(name)),
      [],
      'not documented',
    )
    for (const file of ['grafana-dashboard.json', 'prometheus-alerts.yml', 'prometheus-alerts.test.yml']) {
      const uses = readFileSync(new URL(`../../packaging/monitoring/${file}`, import.meta.url), 'utf8')
      const named = [...uses.matchAll(/\b(?:assay|process|nodejs)_\w+/g)].map(([name]) =>
        served.has(name) ? name : name.replace(/_(bucket|count|sum)$/, ''),
      )
      assert(named.length > 0)
      assert.deepEqual(
        named.filter((name) => !served.has(name)),
        [],
        file,
      )
    }
  })

  test('are not served on the port of the interface', async () => {
    assert.equal((await get('/metrics')).status, 404)
    assert.equal((await fetch(metrics.replace('/metrics', '/v1/ping'))).status, 404)
  })

  test('are served on 127.0.0.1 only', async () => {
    // Another process may use the same port of the other address.
    const elsewhere = fetch(metrics.replace('127.0.0.1', '127.0.0.2')).then((answer) => answer.text())
    assert.doesNotMatch(await elsewhere.catch(() => ''), /operation="General\.Ping"/)
  })
})

test('browsers must not guess media types: every response says so', async () => {
  for (const path of [
    '/livez',
    '/readyz',
    '/v1/ping',
    '/openapi.json',
    '/reference/',
    '/problems/not-found',
    '/console',
    '/console/assets/none.js',
    '/admin/v1/session',
    '/nothing',
    '/%',
  ]) {
    assert.equal((await get(path)).headers['x-content-type-options'], 'nosniff', path)
  }
  const metrics = await fetch(`http://127.0.0.1:${service.metricsPort}/metrics`)
  assert.equal(metrics.headers.get('x-content-type-options'), 'nosniff')
  assert.match(
    await sendAndHangUp(service.url, 'garbage\r\n\r\n'),
    /^HTTP\/1\.1 400 [\s\S]*X-Content-Type-Options: nosniff\r\n/,
  )
})
