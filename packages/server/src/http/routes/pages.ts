import { type ProblemKind, problemKinds } from '@assay/contract'
import type { FastifyInstance } from 'fastify'
import { toOpenApi } from '../openapi.ts'
import { toOrigin } from '../origin.ts'
import { sendProblem, statusOf } from '../problem-response.ts'
import { registerReference } from './reference.ts'

/** Nothing on our pages may talk to another host. */
const contentPolicy =
  "default-src 'none'; script-src 'self' 'unsafe-inline'; style-src 'self' 'unsafe-inline'; " +
  "img-src 'self' data: blob:; font-src 'self' data:; connect-src 'self'; base-uri 'none'; frame-ancestors 'none'"

/** What people read: the machine-readable description, the interactive reference, and a page for each problem. */
export function registerPages(app: FastifyInstance, deps: { version: string }) {
  app.addHook('onSend', async (_request, reply, payload) => {
    reply.header('Content-Security-Policy', contentPolicy).header('X-Content-Type-Options', 'nosniff')
    return payload
  })

  app.get('/openapi.json', async (request) => toOpenApi(toOrigin(request), deps.version))

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
