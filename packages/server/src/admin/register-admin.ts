import { type AdminRouteName, adminPath, adminRoutes, checkForm, type Route } from '@assay/contract/admin'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { Problem } from '../domain/problem.ts'
import { leaveBodiesToHandlers, readJsonBody } from '../http/body.ts'
import { requireValid } from '../http/problem-response.ts'
import type { Call, Handlers } from './call.ts'
import { type GuardDeps, makeGuard, toRequestOrigin } from './guard.ts'

/** Every route of the table behind the same guard, its query and its form checked against their schemas. */
export function registerAdmin(app: FastifyInstance, deps: GuardDeps & { handlers: Handlers }) {
  const guard = makeGuard(deps)
  leaveBodiesToHandlers(app)
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
  requireValid(route.query === undefined ? {} : checkForm(route.query, query))
  if (route.body === undefined) return { params, query, body: undefined }
  const body = await readJsonBody(request, reply)
  requireValid(checkForm(route.body, body))
  return { params, query, body }
}
