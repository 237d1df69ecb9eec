import type { operatorRoutes } from '@assay/contract/admin'
import { validate as isUuid } from 'uuid'
import type { AuditLog } from '../domain/ports/audit-log.ts'
import type { Clock } from '../domain/ports/clock.ts'
import type { DeliveryStore } from '../domain/ports/delivery-store.ts'
import type { Operations } from '../domain/ports/operations.ts'
import { Problem } from '../domain/problem.ts'
import { type Call, type Handlers, requireThere } from './call.ts'

export type JobHandlerDeps = {
  operations: Operations
  deliveries: DeliveryStore
  audit: AuditLog
  clock: Clock
  /** There is a job to be taken. */
  onQueued(): void
  onReplayed(): void
}

type Names = 'listJobs' | 'retryJob' | 'listFailingHosts' | 'pauseHost' | 'replayHost'

const stuckMs = 5 * 60_000
const monthMs = 30 * 86_400_000
const replayAtOnce = 10_000

/** Background scans and webhooks of all accounts. */
export function makeJobHandlers(deps: JobHandlerDeps): Handlers<Names & keyof typeof operatorRoutes> {
  const { operations, deliveries, audit, clock } = deps
  const ago = (ms: number) => new Date(clock.now().getTime() - ms)

  return {
    async listJobs({ query }) {
      const limit = Number(query.limit ?? 50)
      const after = query.cursor !== undefined && isUuid(query.cursor) ? query.cursor : undefined
      const found = await operations.listJobs({ state: query.state, stuckSince: ago(stuckMs), after, limit: limit + 1 })
      const items = found.slice(0, limit).map((job) => ({
        ...{
          id: job.id,
          account_id: job.accountId,
          account_name: job.accountName,
          scan_type: job.kind,
          state: job.state,
        },
        ...{ attempts: job.attempts, content_length: job.contentLength, created_at: job.createdAt.toISOString() },
        held_until: job.heldUntil?.toISOString() ?? null,
      }))
      return { items, next: found.length > limit ? (items.at(-1)?.id ?? null) : null }
    },

    async retryJob(call) {
      const { id = '' } = call.params
      requireThere(isUuid(id), 'job')
      if (!(await operations.releaseJob(id))) {
        throw new Problem({
          kind: 'conflict',
          detail: 'This job is not delayed: it is waiting, running or completed.',
        })
      }
      deps.onQueued()
      await note(call, 'job.retry', id)
    },

    async listFailingHosts() {
      const hosts = await operations.listFailingHosts(ago(monthMs))
      return hosts.map(({ failingSince, ...host }) => ({ ...host, failing_since: failingSince?.toISOString() ?? null }))
    },

    async pauseHost(call) {
      const { host, paused } = call.body
      requireThere((await operations.pauseHost(host, paused)) > 0, 'receiver')
      if (!paused) deps.onReplayed()
      await note(call, paused ? 'host.pause' : 'host.resume', host)
    },

    async replayHost(call) {
      const { host, since } = call.body
      const ids = await operations.listFailedAt(host, new Date(since), replayAtOnce)
      let replayed = 0
      for (const id of ids) replayed += await deliveries.replay({ id })
      deps.onReplayed()
      await note(call, 'host.replay', host, `${replayed} since ${since}`)
      return { replayed }
    },
  }

  async function note(call: Pick<Call<'listJobs'>, 'who' | 'origin'>, action: string, target: string, detail?: string) {
    await audit.note({ actor: call.who.actor, action, target, detail, address: call.origin.address })
  }
}
