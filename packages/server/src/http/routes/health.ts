import type { FastifyInstance } from 'fastify'
import type { Readiness } from '../../domain/readiness.ts'

/** `/livez`: the process answers. `/readyz`: it can do its work, and if not, why, in sentences. */
export function registerHealth(app: FastifyInstance, deps: { readiness: Readiness; region: string; version: string }) {
  app.get('/livez', async () => ({ status: 'alive' }))

  app.get('/readyz', async (_request, reply) => {
    const { status, reasons, checks } = await deps.readiness.check()
    reply.code(status === 'unavailable' ? 503 : 200).header('Cache-Control', 'no-store')
    return { status, reasons, checks, region: deps.region, version: deps.version }
  })
}
