import type { DeliveryStore } from '../domain/ports/delivery-store.ts'
import type { Operations, QueuedJob } from '../domain/ports/operations.ts'
import { Problem } from '../domain/problem.ts'
import { getId, type Handlers, listPage, requireFound } from './call.ts'

export type JobHandlerDeps = {
  operations: Operations
  deliveries: DeliveryStore
  /** Wakes the workers after a job becomes available. */
  onQueued(): void
  /** Wakes the delivery worker after deliveries become due. */
  onReplayed(): void
}

const stuckMs = 5 * 60_000
const monthMs = 30 * 86_400_000
const replayAtOnce = 10_000

/** Handlers for the jobs and webhooks of all accounts. */
export function makeJobHandlers(deps: JobHandlerDeps) {
  const { operations, deliveries } = deps

  return {
    async listJobs({ query }) {
      const { state } = query
      return listPage(
        query,
        ({ cursor, limit }) => operations.listJobs({ state, stuckMs, after: cursor, limit }),
        toJobRow,
      )
    },

    async retryJob(call) {
      const id = getId(call, 'job')
      if (!(await operations.releaseJob(id))) {
        throw new Problem({
          kind: 'conflict',
          detail: 'This job is not delayed: it is waiting, running or completed.',
        })
      }
      deps.onQueued()
      await call.audit('job.retry', id)
    },

    async listFailingHosts() {
      const hosts = await operations.listFailingHosts(monthMs)
      return hosts.map(({ failingSince, ...host }) => ({ ...host, failing_since: failingSince?.toISOString() ?? null }))
    },

    async pauseHost(call) {
      const { host, paused } = call.body
      requireFound((await operations.pauseHost(host, paused)) > 0, 'receiver')
      if (!paused) deps.onReplayed()
      await call.audit(paused ? 'host.pause' : 'host.resume', host)
    },

    async replayHost(call) {
      const { host, since } = call.body
      const ids = await operations.listFailedDeliveries(host, new Date(since), replayAtOnce)
      const replayed = await deliveries.replay({ ids })
      deps.onReplayed()
      await call.audit('host.replay', host, { detail: `${replayed} since ${since}` })
      return { replayed }
    },
  } satisfies Partial<Handlers>
}

const toJobRow = (job: QueuedJob) => ({
  id: job.id,
  account_id: job.accountId,
  account_name: job.accountName,
  scan_type: job.kind,
  state: job.state,
  attempts: job.attempts,
  content_length: job.contentLength,
  created_at: job.createdAt.toISOString(),
  held_until: job.heldUntil?.toISOString() ?? null,
})
