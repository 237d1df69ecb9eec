import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { sendProblem, toPath } from './problem-response.ts'

/** Knows every path there is, to tell "no such path" from "not with this method". */
export function watchRoutes(app: FastifyInstance, { servesApi }: { servesApi: boolean }) {
  const routes: { methods: string[]; pattern: RegExp }[] = []
  app.addHook('onRoute', ({ method, url }) => {
    // Where preflights of browsers are answered; no path of its own.
    if (url === '*') return
    const path = url.replace(/\/$/, '').replaceAll(/:[a-z]+/g, '[^/]+')
    routes.push({ methods: [method].flat(), pattern: new RegExp(`^${path}/?$`, 'i') })
  })

  return (request: FastifyRequest, reply: FastifyReply) => {
    const path = toPath(request)
    const matching = isUnroutable(path) ? [] : routes.filter(({ pattern }) => pattern.test(path))
    const allow = [...new Set(matching.flatMap(({ methods }) => methods))].sort()
    const problem = allow.length === 0 ? toNotFound(servesApi) : ({ kind: 'method-not-allowed', allow } as const)
    return sendProblem(request, reply, problem)
  }
}

function toNotFound(servesApi: boolean) {
  if (servesApi) return { kind: 'not-found' } as const
  const detail =
    'This node scans for others, and answers /livez and /readyz alone. Send this to a node that serves the API.'
  return { kind: 'not-found', detail } as const
}

/** Paths that some proxies read as another path: they match nothing here, not even a parameter. */
export const isUnroutable = (path: string): boolean => /\/\/|\/\.{1,2}(\/|$)|%2e|%2f|%5c|%00|\\/i.test(path)
