import type { Pool } from 'pg'
import type { AccountStep, ActivitySpan, ActivityStore, ServiceStep } from '../domain/ports/scan-store.ts'
import { requestSeconds } from '../runtime/activity-totals.ts'
import { changeRows, findRow, listRows, toTimeAgo } from './query.ts'

/** Counters of a row, in the order of the parameters that record them. */
const counters = [
  'malware_clean',
  'malware_threat',
  'malware_error',
  'image_clean',
  'image_threat',
  'image_error',
  'malware_ms',
  'image_ms',
  'webhooks_delivered',
  'webhooks_failed',
] as const

export function makeActivityStore({ pool }: { pool: Pool }): ActivityStore {
  return {
    async record(nodeId, { scans, engineMs, latency, deliveries, memoryBytes, queue }, agoMs) {
      const { malware, nsfw_image: image } = scans
      await changeRows(pool, recordMinute, [
        nodeId,
        agoMs,
        malware.clean,
        malware.threat,
        malware.error,
        image.clean,
        image.threat,
        image.error,
        Math.round(engineMs.malware),
        Math.round(engineMs.nsfw_image),
        deliveries.delivered,
        deliveries.failed,
        latency,
        Math.round(memoryBytes),
        queue.waiting,
        queue.oldestSeconds,
      ])
    },

    async listServiceSteps(span) {
      const [rows, latencies] = await Promise.all([
        listRows<ServiceRow>(pool, listServiceSteps, toValues(span)),
        listRows<LatencyRow>(pool, listServiceLatency, toValues(span)),
      ])
      const addLatency = groupLatency(latencies)
      return rows.map((row): ServiceStep => addLatency({ ...toCounts(row), ...toGauges(row) }))
    },

    async listAccountSteps(accountId, span) {
      const [rows, latencies, queues] = await Promise.all([
        listRows<CountRow>(pool, listAccountSteps, [...toValues(span), accountId]),
        listRows<LatencyRow>(pool, listAccountLatency, [...toValues(span), accountId, requestSeconds]),
        listRows<QueueRow>(pool, listAccountQueue, [...toValues(span), accountId]),
      ])
      const addLatency = groupLatency(latencies)
      const queueAt = new Map(queues.map(({ at, ...queue }) => [at.getTime(), queue]))
      return rows.map((row): AccountStep => {
        const queue = queueAt.get(row.at.getTime()) ?? { waiting: 0, oldestSeconds: 0 }
        return addLatency({ ...toCounts(row), queue })
      })
    },

    async countJobsOf(accountId, most) {
      const row = await findRow<{ waiting: number; oldestSeconds: number }>(pool, countJobsOf, [accountId, most])
      return row ?? { waiting: 0, oldestSeconds: 0 }
    },

    // Rows of the future are from before the clock of the database was set back.
    deleteOld: (days) =>
      changeRows(
        pool,
        `delete from node_minutes where minute < now() - $1::integer * interval '1 day'
           or minute > now() + interval '1 hour'`,
        [days],
      ),
  }
}

type CountRow = { at: Date } & Record<Exclude<(typeof counters)[number], 'malware_ms' | 'image_ms'>, number>
type ServiceRow = CountRow & {
  malware_ms: number
  image_ms: number
  memory_bytes: number | null
  jobs_waiting: number | null
  jobs_oldest_seconds: number | null
}
type QueueRow = { at: Date; waiting: number; oldestSeconds: number }
type LatencyRow = { at: Date; bucket: number; count: number }

const toValues = ({ steps, stepSeconds }: ActivitySpan) => [stepSeconds, steps]

const toCounts = (row: CountRow) => ({
  at: row.at,
  scans: {
    malware: { clean: row.malware_clean, threat: row.malware_threat, error: row.malware_error },
    nsfw_image: { clean: row.image_clean, threat: row.image_threat, error: row.image_error },
  },
  deliveries: { delivered: row.webhooks_delivered, failed: row.webhooks_failed },
})

const toGauges = (row: ServiceRow) => ({
  engineMs: { malware: row.malware_ms, nsfw_image: row.image_ms },
  memoryBytes: row.memory_bytes,
  queue:
    row.jobs_waiting === null || row.jobs_oldest_seconds === null
      ? null
      : { waiting: row.jobs_waiting, oldestSeconds: row.jobs_oldest_seconds },
})

/** Returns a function that adds the histogram of its step, with zeros where nothing was counted. */
function groupLatency(rows: LatencyRow[]) {
  const steps = new Map<number, number[]>()
  for (const { at, bucket, count } of rows) {
    const histogram = steps.get(at.getTime()) ?? newHistogram()
    histogram[bucket] = count
    steps.set(at.getTime(), histogram)
  }
  return <S extends { at: Date }>(step: S) => ({ ...step, latency: steps.get(step.at.getTime()) ?? newHistogram() })
}

const newHistogram = () => Array.from({ length: requestSeconds.length + 1 }, () => 0)

const recordMinute = `
insert into node_minutes as m (node_id, minute, ${counters.join(', ')}, latency, memory_bytes, jobs_waiting,
  jobs_oldest_seconds)
values ($1, date_trunc('minute', ${toTimeAgo('$2')}), ${counters.map((_, n) => `$${n + 3}`).join(', ')}, $13, $14, $15,
  $16)
on conflict (minute, node_id) do update
set ${counters.map((name) => `${name} = m.${name} + excluded.${name}`).join(', ')},
  latency = array(
    select coalesce(old, 0) + coalesce(new, 0)
    from unnest(m.latency, excluded.latency) with ordinality as both_rows (old, new, n) order by n
  ),
  memory_bytes = greatest(m.memory_bytes, excluded.memory_bytes),
  jobs_waiting = greatest(m.jobs_waiting, excluded.jobs_waiting),
  jobs_oldest_seconds = greatest(m.jobs_oldest_seconds, excluded.jobs_oldest_seconds)
`

const step = `make_interval(secs => $1)`
const toStep = (time: string) => `date_bin(${step}, ${time}, 'epoch'::timestamptz)`
const firstStep = `${toStep('now()')} - ($2 - 1) * ${step}`
/** Every step of the span, also those without rows. */
const grid = `generate_series(${firstStep}, ${toStep('now()')}, ${step}) as grid (at)`

const inSpan = `minute >= ${firstStep} and minute <= now()`

/** The nodes of a minute are added up first: memory is the highest sum, not the sum of the highest. */
const listServiceSteps = `
with minutes as (
  select minute, ${counters.map((name) => `sum(${name}) as ${name}`).join(', ')}, sum(memory_bytes) as memory_bytes,
    max(jobs_waiting) as jobs_waiting, max(jobs_oldest_seconds) as jobs_oldest_seconds
  from node_minutes where ${inSpan} group by minute
), steps as (
  select ${toStep('minute')} as at, ${counters.map((name) => `sum(${name}) as ${name}`).join(', ')},
    max(memory_bytes) as memory_bytes, max(jobs_waiting) as jobs_waiting,
    max(jobs_oldest_seconds) as jobs_oldest_seconds
  from minutes group by 1
)
select grid.at, ${counters.map((name) => `coalesce(${name}, 0)::float8 as ${name}`).join(', ')},
  memory_bytes::float8 as memory_bytes, jobs_waiting, jobs_oldest_seconds
from ${grid} left join steps on steps.at = grid.at order by grid.at
`

const listServiceLatency = `
select ${toStep('minute')} as at, n::integer - 1 as bucket, sum(count)::float8 as count
from node_minutes, unnest(latency) with ordinality as histogram (count, n)
where ${inSpan} and count > 0 and n <= ${requestSeconds.length + 1} group by 1, 2
`

const countScans = (kind: string, status: string) =>
  `count(*) filter (where kind = '${kind}' and status = '${status}') as`

/** Counts scans and deliveries by the time at which they began, because their indexes are by that time. */
const listAccountSteps = `
with scan_steps as (
  select ${toStep('created_at')} as at, ${countScans('malware', 'clean')} malware_clean,
    ${countScans('malware', 'threat')} malware_threat, ${countScans('malware', 'error')} malware_error,
    ${countScans('nsfw_image', 'clean')} image_clean, ${countScans('nsfw_image', 'threat')} image_threat,
    ${countScans('nsfw_image', 'error')} image_error
  from scans where account_id = $3 and created_at >= ${firstStep} group by 1
), delivery_steps as (
  select ${toStep('created_at')} as at, count(*) filter (where state = 'delivered') as webhooks_delivered,
    count(*) filter (where state in ('dead', 'stopped')) as webhooks_failed
  from deliveries where account_id = $3 and created_at >= ${firstStep} group by 1
)
select grid.at, ${counters
  .filter((name) => !name.endsWith('_ms'))
  .map((name) => `coalesce(${name}, 0)::float8 as ${name}`)
  .join(', ')}
from ${grid}
left join scan_steps on scan_steps.at = grid.at left join delivery_steps on delivery_steps.at = grid.at
order by grid.at
`

const listAccountLatency = `
select ${toStep('created_at')} as at,
  width_bucket(extract(epoch from completed_at - created_at)::float8, $4::float8[]) as bucket, count(*)::float8 as count
from scans where account_id = $3 and created_at >= ${firstStep} and completed_at is not null
group by 1, 2
`

/**
 * Background scans without a verdict at the end of each step. A scan that has a verdict is known by its row, if it began
 * at most one span before the first step; one that still waits, by its row or its job. The counts are materialized,
 * because PostgreSQL would make them again for each step otherwise.
 */
const listAccountQueue = `
with background as (
  select created_at, coalesce(completed_at, 'infinity') as completed_at
  from scans where account_id = $3 and created_at >= ${firstStep} - $2 * ${step} and mode = 'async'
  union all
  select created_at, 'infinity'
  from jobs where account_id = $3 and held_until is null and created_at < ${firstStep} - $2 * ${step}
), began as materialized (
  select ${toStep('created_at')} as at, count(*) as count from background group by 1
), ended as materialized (
  select case when isfinite(completed_at) then ${toStep('completed_at')} else completed_at end as at,
    count(*) as count, min(created_at) as oldest
  from background group by 1
)
select grid.at,
  (select coalesce(sum(count), 0) from began where began.at <= grid.at)::float8
    - (select coalesce(sum(count), 0) from ended where ended.at <= grid.at)::float8 as waiting,
  greatest(0, extract(epoch from least(now(), grid.at + ${step})
    - (select min(oldest) from ended where ended.at > grid.at)))::float8 as "oldestSeconds"
from ${grid}
`

const countJobsOf = `
select count(*)::integer as waiting,
  coalesce(extract(epoch from now() - min(created_at)), 0)::float8 as "oldestSeconds"
from (select created_at from jobs where account_id = $1 and held_until is null order by position limit $2) as oldest_jobs
`
