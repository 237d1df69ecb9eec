import assert from 'node:assert/strict'
import { createHmac } from 'node:crypto'
import { createServer } from 'node:http'
import { Readable } from 'node:stream'
import { type TestContext, test } from 'node:test'
import { newClient, type ScanResult } from '@assay/client'
import { receiveWebhooks as receiveInExpress } from '@assay/client/express'
import { receiveWebhooks as receiveInFastify } from '@assay/client/fastify'
import { receiveWebhooks as receiveInNext } from '@assay/client/next'
import { receiveWebhooks as receiveInWorkers } from '@assay/client/workers'
import express from 'express'
import Fastify from 'fastify'
import { getSharedService } from '../../../acceptance/support/shared-service.ts'
import { waitUntil } from '../../../acceptance/support/wait-until.ts'
import { listen, newResult } from './fake-server.ts'

const service = getSharedService()
const { api_key: apiKey, webhook_secret } = await service.createAccount()
const path = '/webhooks/assay'
const secret = 'whsec_WUOMk48YN/5jO/ak8ocbDIcUsz0hhfn4n9FTGWsRPd8='
const result = newResult()

type Options = { secret: string; onResult(result: ScanResult, delivery: { id: string | undefined }): Promise<void> }
/** An address that the service under test may call. */
const host = '127.9.9.9'

/** Starts each framework with the receiver set up as documented, and returns its address. */
const frameworks: Record<string, (t: TestContext, options: Options) => Promise<string>> = {
  async Fastify(t, options) {
    const app = Fastify()
    app.post('/other', async (request) => request.body)
    await app.register(receiveInFastify({ path, ...options }))
    t.after(() => app.close())
    return await app.listen({ host, port: 0 })
  },
  async Express(t, options) {
    const app = express()
    app.post(path, receiveInExpress(options))
    app.use(express.json())
    app.post('/other', (request, response) => void response.json(request.body))
    app.use(answer500)
    return await listenOnHost(t, app)
  },
  async 'Express after express.raw()'(t, options) {
    const app = express()
    app.use(express.raw({ type: '*/*', limit: '1mb' }))
    app.post(path, receiveInExpress(options))
    app.use(answer500)
    return await listenOnHost(t, app)
  },
  async Next(t, options) {
    const POST = receiveInNext(options)
    return await serve(t, POST)
  },
  async Workers(t, options) {
    const worker = receiveInWorkers<{ SECRET: string }>({ ...options, secret: (env) => env.SECRET })
    return await serve(t, (request) => worker.fetch(request, { SECRET: options.secret }))
  },
}

for (const [name, open] of Object.entries(frameworks)) {
  test(`${name}: a genuine webhook reaches onResult once, and others are rejected`, async (t) => {
    const results: unknown[] = []
    let failure: Error | undefined
    const url = await open(t, {
      secret,
      async onResult(received, delivery) {
        if (failure !== undefined) throw failure
        results.push({ received, delivery })
      },
    })
    const post = async (body: string | Buffer, headers: Record<string, string>) => {
      const options = { method: 'POST', body, headers: { 'content-type': 'application/json', ...headers } }
      return (await fetch(url + path, options)).status
    }
    const body = JSON.stringify(result)
    assert.equal(await post(body, sign(body)), 200)
    assert.deepEqual(results, [{ received: result, delivery: { id: 'delivery-1' } }])

    const rejections: [status: number, body: string | Buffer, headers: Record<string, string>][] = [
      [401, body, {}],
      [401, `${body} `, sign(body)],
      [401, body, { ...sign(body), 'webhook-timestamp': '1' }],
      [400, 'no result', sign('no result')],
    ]
    for (const [status, sent, headers] of rejections) assert.equal(await post(sent, headers), status, String(sent))
    const huge = await post(Buffer.alloc(300 * 1024, ' '), sign(''))
    assert([400, 401, 413].includes(huge), `${huge}`)
    const got = await fetch(url + path)
    assert([404, 405].includes(got.status), `GET: ${got.status}`)
    failure = new Error('the database is away')
    assert.equal(await post(body, sign(body)), 500, 'so that Assay sends it again')
    assert.equal(results.length, 1)
  })

  test(`${name}: receives the result of a scan from the service`, async (t) => {
    const results: ScanResult[] = []
    const onResult = async (received: ScanResult) => void results.push(received)
    const url = await open(t, { secret: webhook_secret, onResult })
    const { malware } = newClient({ apiKey, baseUrl: service.url })
    const { id } = await malware.submitFile(Buffer.from('content'), { callbackUrl: url + path })
    await waitUntil('the webhook', () => results.length > 0)
    assert.deepEqual(results[0], await malware.waitFor(id))
  })
}

test('the receiver does not change the parsers of the application', async (t) => {
  for (const name of ['Fastify', 'Express']) {
    const url = await frameworks[name]?.(t, { secret, async onResult() {} })
    const options = { method: 'POST', body: '{"a":1}', headers: { 'content-type': 'application/json' } }
    assert.deepEqual(await (await fetch(`${url}/other`, options)).json(), { a: 1 }, name)
  }
})

test('in Express, a body that was parsed before is an error', async (t) => {
  const app = express()
  app.use(express.json())
  app.post(path, receiveInExpress({ secret, onResult() {} }))
  let message = ''
  app.use((error: Error, _request: express.Request, response: express.Response, _next: express.NextFunction) => {
    message = error.message
    response.status(500).end()
  })
  const url = await listenOnHost(t, app)
  const body = JSON.stringify(result)
  await fetch(url + path, { method: 'POST', body, headers: { 'content-type': 'application/json', ...sign(body) } })
  assert.match(message, /Put receiveWebhooks before express\.json\(\)/)
})

function sign(body: string): Record<string, string> {
  const timestamp = String(Math.floor(Date.now() / 1000))
  const key = Buffer.from(secret.slice('whsec_'.length), 'base64')
  const signature = createHmac('sha256', key).update(`delivery-1.${timestamp}.${body}`).digest('base64')
  return { 'webhook-id': 'delivery-1', 'webhook-timestamp': timestamp, 'webhook-signature': `v1,${signature}` }
}

/** An error handler for Express that prints nothing. */
function answer500(
  _error: unknown,
  _request: express.Request,
  response: express.Response,
  _next: express.NextFunction,
) {
  response.status(500).end()
}

const listenOnHost = async (t: TestContext, handler: Parameters<typeof createServer>[1]) =>
  `http://${await listen(t, createServer(handler), { host })}`

/** Serves a handler from Request to Response, with status 500 if it throws. */
async function serve(t: TestContext, handle: (request: Request) => Promise<Response>): Promise<string> {
  return await listenOnHost(t, async (incoming, outgoing) => {
    const headers = new Headers()
    for (const [name, value] of Object.entries(incoming.headers)) headers.set(name, String(value))
    const { method = '' } = incoming
    const body = method === 'GET' ? null : (Readable.toWeb(incoming) as ReadableStream<Uint8Array>)
    const request = new Request(`http://${host}${incoming.url}`, { method, headers, body, duplex: 'half' })
    const response = await handle(request).catch(() => new Response(null, { status: 500 }))
    outgoing.writeHead(response.status).end(await response.text())
  })
}
