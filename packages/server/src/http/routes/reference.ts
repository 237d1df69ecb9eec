import fastify, { type FastifyInstance } from 'fastify'
import { sendProblem } from '../problem-response.ts'

/**
 * The interactive reference. It is 26 MB in memory, and few services are ever asked for it: so it is loaded by the first
 * who wants to read it, into a server of its own that is asked without a socket.
 */
export function registerReference(app: FastifyInstance) {
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
      // Everything comes from this server: no fonts, no telemetry, no proxy, no assistants of others.
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
