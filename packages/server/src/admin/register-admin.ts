import { type AdminRouteName, adminPath, adminRoutes, checkForm, type Route } from '@assay/contract/admin'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { Problem } from '../domain/problem.ts'
import { readJsonBody } from '../http/json-body.ts'
import { requireMediaType } from '../http/media-type.ts'
import type { Call, Handlers } from './call.ts'
import { type GuardDeps, makeGuard, toRequestOrigin } from './guard.ts'

/** Every route of the table behind the same guard, its query and its form checked against their schemas. */
export function registerAdmin(app: FastifyInstance, deps: GuardDeps & { handlers: Handlers }) {
  const guard = makeGuard(deps)
  app.removeAllContentTypeParsers()
  app.addContentTypeParser('*', (_request, _payload, done) => done(null))
  app.addHook('onSend', async (_request, reply, payload) => {
    reply.header('Cache-Control', 'no-store').header('X-Content-Type-Options', 'nosniff')
    return payload
  })
  for (const [name, route] of Object.entries(adminRoutes) as [AdminRouteName, Route][]) {
    app.route({
      method: route.method,
      url: adminPath + route.path.replaceAll(/\{(\w+)\}/g, ':$1'),
      handler: async (request, reply) => {
        const who = await guard(route, request)
        const call = {
          who,
          origin: toRequestOrigin(request),
          ...(await readInput(route, request, reply)),
          request,
          reply,
        }
        const answer = await run(deps.handlers, name, call)
        return route.answer === undefined && answer === undefined ? reply.code(204).send() : answer
      },
    })
  }
}

/** The table has brought name and call together; types cannot follow it there. */
const run = (handlers: Handlers, name: AdminRouteName, call: unknown): Promise<unknown> =>
  (handlers[name] as (call: Call<AdminRouteName>) => Promise<unknown>)(call as Call<AdminRouteName>)

async function readInput(route: Route, request: FastifyRequest, reply: FastifyReply) {
  const params = request.params as Record<string, string>
  // Nothing can have such a name or id.
  if (Object.values(params).some((value) => value.includes('\u0000'))) throw new Problem({ kind: 'not-found' })
  const query = (request.query ?? {}) as Record<string, unknown>
  requireRight(route.query === undefined ? {} : checkForm(route.query, query))
  if (route.body === undefined) return { params, query, body: undefined }
  requireMediaType(request, 'application/json')
  const body = await readJsonBody(request, reply)
  requireRight(checkForm(route.body, body))
  return { params, query, body }
}

function requireRight(errors: Record<string, string[]>) {
  if (Object.keys(errors).length > 0) throw new Problem({ kind: 'validation', errors })
}
