import type { FastifyInstance } from 'fastify'
import type { Clock } from '../domain/clock.ts'
import type { EngineState } from '../domain/ports/engines.ts'
import type { Readiness } from '../domain/readiness.ts'

export type HealthDeps = {
  readiness: Readiness
  listEngines(): { name: string; state: EngineState | undefined }[]
  roles: string[]
  /** Counts live workers; undefined on a node that scans by itself. */
  countWorkers: (() => Promise<number>) | undefined
  region: string
  version: string
  /** Tells the age of the signatures. */
  clock: Clock
  /** True in test mode, where nothing is scanned. */
  isTest?: boolean
}

export const isHealth = (path: string): boolean => path === '/livez' || path === '/readyz'

/** Registers `/livez`, which the process always answers, and `/readyz`, which explains why it cannot serve requests. */
export function registerHealth(app: FastifyInstance, deps: HealthDeps) {
  app.get('/livez', async () => ({ status: 'alive' }))

  app.get('/readyz', async (_request, reply) => {
    const { status, reasons, checks } = await deps.readiness.check()
    reply.code(status === 'unavailable' ? 503 : 200).header('Cache-Control', 'no-store')
    const engines = deps.listEngines().map(({ name, state }) => toEngine(name, state, deps.clock.now()))
    const mode = deps.isTest === true ? { mode: 'test mode' } : {}
    const workers = deps.countWorkers && { workers: await deps.countWorkers().catch(() => null) }
    const { roles, region, version } = deps
    return { status, ...mode, reasons, checks, roles, ...workers, engines, region, version }
  })
}

function toEngine(name: string, state: EngineState | undefined, now: Date) {
  const at = state?.signaturesAt
  return {
    name,
    version: state?.version ?? null,
    signatures: state?.signatures ?? null,
    signatures_at: at?.toISOString() ?? null,
    signatures_age_hours: at === undefined ? null : Math.max(0, Math.round((now.getTime() - at.getTime()) / 3_600_000)),
  }
}
