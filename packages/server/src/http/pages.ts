import { type ProblemKind, problemKinds, receiptKeysPath } from '@assay/contract'
import fastify, { type FastifyInstance } from 'fastify'
import type { ReceiptKeyStore } from '../domain/ports/secret-store.ts'
import { toPublicKey } from '../domain/receipts.ts'
import { toOpenApi } from './openapi.ts'
import { sendProblem, statusOf } from './problem-response.ts'
import { toOrigin } from './request.ts'

/** No page may load anything from another host. */
const contentPolicy =
  "default-src 'none'; script-src 'self' 'unsafe-inline'; style-src 'self' 'unsafe-inline'; " +
  "img-src 'self' data: blob:; font-src 'self' data:; connect-src 'self'; base-uri 'none'; frame-ancestors 'none'"

/** Registers the OpenAPI document, the interactive reference, and a page for each kind of problem. */
export function registerPages(app: FastifyInstance) {
  app.addHook('onSend', async (_request, reply, payload) => {
    reply.header('Content-Security-Policy', contentPolicy)
    return payload
  })

  app.get('/openapi.json', async (request) => toOpenApi(toOrigin(request)))

  app.get('/problems/:kind', async (request, reply) => {
    const { kind } = request.params as { kind: string }
    if (!Object.hasOwn(problemKinds, kind)) return sendProblem(request, reply, { kind: 'not-found' })
    return reply.type('text/html; charset=utf-8').send(toProblemPage(kind as ProblemKind))
  })

  registerReference(app)
}

const toProblemPage = (kind: ProblemKind) => {
  const { title, meaning, remedy } = problemKinds[kind]
  return `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>${title}</title>
<style>
  body { font: 18px/1.6 system-ui, sans-serif; max-width: 36rem; margin: 4rem auto; padding: 0 1rem; color-scheme: light dark }
  code { opacity: 0.7 }
</style>
<h1>${title}</h1>
<p><code>${statusOf[kind]} ${kind}</code></p>
<p>${meaning}</p>
<p><b>What to do.</b> ${remedy}</p>
</html>
`
}

/**
 * Registers the interactive reference. It takes 26 MB of memory and is seldom read, so the first request for it loads it
 * into a Fastify server of its own, which is called without a socket.
 */
function registerReference(app: FastifyInstance) {
  let opening: Promise<FastifyInstance> | undefined

  for (const url of ['/reference', '/reference/*']) {
    app.get(url, async (request, reply) => {
      opening ??= openReference()
      const answer = await (await opening).inject({ method: 'GET', url: request.url })
      if (answer.statusCode === 404) return sendProblem(request, reply, { kind: 'not-found' })
      const { 'content-length': _length, connection: _connection, date: _date, ...headers } = answer.headers
      return reply.code(answer.statusCode).headers(headers).send(answer.rawPayload)
    })
  }
}

async function openReference(): Promise<FastifyInstance> {
  const { default: apiReference } = await import('@scalar/fastify-api-reference')
  const app = fastify()
  await app.register(apiReference, {
    routePrefix: '/reference',
    configuration: {
      url: '/openapi.json',
      cdn: '/reference/js/scalar.js',
      pageTitle: 'Assay reference',
      // Everything comes from this server: the page loads no fonts, telemetry, proxy or assistant of other hosts.
      withDefaultFonts: false,
      telemetry: false,
      proxyUrl: '',
      agent: { disabled: true },
      mcp: { disabled: true },
      hideClientButton: true,
      showDeveloperTools: 'never',
    },
  })
  return app
}

/** Registers the well-known address of the public keys that verify receipts, as a JSON Web Key Set. */
export function registerReceiptKeys(app: FastifyInstance, keys: Pick<ReceiptKeyStore, 'listKeys'>) {
  // Unlike other public pages, this one asks the database.
  app.get(receiptKeysPath, { config: { strangerWeight: 5 } }, async (_request, reply) => {
    reply.header('Cache-Control', 'public, max-age=60')
    return { keys: (await keys.listKeys()).map(({ publicKey }) => toPublicKey(publicKey)) }
  })
}
