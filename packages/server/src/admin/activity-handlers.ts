import type { ActivitySpanName, VerdictPoint } from '@assay/contract/admin'
import type { AccountStep, ActivitySpan, ActivityStore, ServiceStep } from '../domain/ports/activity-store.ts'
import { requestSeconds } from '../runtime/activity-totals.ts'
import { getAccountId, type Handlers } from './call.ts'

const spans: Record<ActivitySpanName, ActivitySpan> = {
  hour: { steps: 60, stepSeconds: 60 },
  day: { steps: 96, stepSeconds: 900 },
}

/** Jobs of an account that are counted; the console shows more as "10,000 or more". */
const mostJobs = 10_000

/** Handlers for the charts of the last hour and day, of the service and of an account. */
export function makeActivityHandlers({ activity, record }: { activity: ActivityStore; record(): Promise<void> }) {
  return {
    async getActivity({ query }) {
      const span = spans[query.span ?? 'hour']
      // Other nodes add theirs at the end of the minute.
      await record()
      const steps = await activity.listServiceSteps(span)
      return {
        step_seconds: span.stepSeconds,
        points: steps.map((step) => ({
          ...toPoint(step),
          engine_seconds: {
            malware: step.engineMs.malware / 1000,
            nsfw_image: step.engineMs.nsfw_image / 1000,
          },
          memory_bytes: step.memoryBytes,
          queue: step.queue && toQueue(step.queue),
        })),
      }
    },

    async getAccountActivity(call) {
      const accountId = getAccountId(call)
      const span = spans[call.query.span ?? 'hour']
      const [steps, queue] = await Promise.all([
        activity.listAccountSteps(accountId, span),
        activity.countJobsOf(accountId, mostJobs),
      ])
      return {
        step_seconds: span.stepSeconds,
        queue: toQueue(queue),
        points: steps.map((step) => ({ ...toPoint(step), queue: toQueue(step.queue) })),
      }
    },
  } satisfies Partial<Handlers>
}

const toQueue = ({ waiting, oldestSeconds }: AccountStep['queue']) => ({ waiting, oldest_seconds: oldestSeconds })

const toPoint = ({ at, scans, latency, deliveries }: AccountStep | ServiceStep): VerdictPoint => ({
  at: at.toISOString(),
  malware: scans.malware,
  nsfw_image: scans.nsfw_image,
  p50_ms: findPercentileMs(latency, 0.5),
  p99_ms: findPercentileMs(latency, 0.99),
  deliveries,
})

/**
 * Estimates a percentile from a histogram, as `histogram_quantile` of Prometheus does: values are taken to be evenly
 * spread within their bucket, and those beyond the last bound to equal it. Null without values.
 */
export function findPercentileMs(histogram: number[], share: number): number | null {
  const rank = histogram.reduce((sum, count) => sum + count, 0) * share
  if (rank === 0) return null
  let below = 0
  for (const [n, count] of histogram.entries()) {
    if (count > 0 && below + count >= rank) {
      const from = requestSeconds[n - 1] ?? 0
      const to = requestSeconds[n] ?? from
      return Math.round((from + (to - from) * ((rank - below) / count)) * 10_000) / 10
    }
    below += count
  }
  return null
}
