import type { Pool } from 'pg'
import type { FailingHost, NodeStatus, NodeStore, Operations, QueuedJob } from '../domain/ports/operations.ts'
import { deliveryLock } from './delivery-admin.ts'
import { changeRows, findRow, inTransaction, listPage, listRows, toPage, toTimeAgo } from './query.ts'

export function makeOperations({ pool }: { pool: Pool }): Operations {
  return {
    listJobs: ({ state, stuckMs, after, limit }) => listPage<QueuedJob>(pool, listJobs, [state, stuckMs, after, limit]),
    async releaseJob(id) {
      const text =
        'update jobs set held_until = null where scan_id = $1 and lease_token is null and held_until is not null'
      return (await changeRows(pool, text, [id])) === 1
    },
    listFailingHosts: (withinMs) => listRows<FailingHost>(pool, listFailingHosts, [withinMs]),
    pauseHost: (host, paused) =>
      inTransaction(pool, (client) => changeRows(client, pauseHost, [host, paused]), { lock: deliveryLock }),
    async listFailedDeliveries(host, since, limit) {
      const rows = await listRows<{ id: string }>(
        pool,
        `select id from deliveries where host = $1 and state in ('dead', 'stopped') and created_at >= $2
         order by created_at limit $3`,
        [host, since, limit],
      )
      return rows.map(({ id }) => id)
    },
    async describeDatabase() {
      const row = await findRow<{ version: string; bytes: number; connections: number }>(
        pool,
        `select current_setting('server_version') as version, pg_database_size(current_database())::float8 as bytes,
           (select count(*)::int from pg_stat_activity where datname = current_database()) as connections`,
      )
      return row ?? { version: '', bytes: 0, connections: 0 }
    },
  }
}

const jobState = `case when lease_token is not null and held_until > now() then 'running'
  when held_until > now() then 'paused' else 'waiting' end`

const page = toPage('jobs', { columns: ['scan_id'], order: 'asc', cursor: '$3::uuid', limit: '$4' })

const listJobs = `
select scan_id as id, jobs.account_id as "accountId", accounts.name as "accountName", scans.kind, ${jobState} as state,
  attempts, content_length::float8 as "contentLength", jobs.created_at as "createdAt", held_until as "heldUntil"
from jobs join scans on scans.id = scan_id join accounts on accounts.id = jobs.account_id
where ($1::text is null or ${jobState} = $1
    or ($1 = 'stuck' and (attempts > 1 or jobs.created_at < ${toTimeAgo('$2')}) and ${jobState} <> 'running'))
  and ${page.condition}
${page.ordering}
`

const listFailingHosts = `
select host, count(distinct url)::int as endpoints, min(failing_since) as "failingSince",
  bool_or(paused_at is not null) as paused,
  (select count(*)::int from deliveries d where d.host = e.host and state = 'pending' and created_at >= ${toTimeAgo('$1')}) as waiting,
  (select count(*)::int from deliveries d where d.host = e.host and state = 'dead' and created_at >= ${toTimeAgo('$1')}) as dead
from webhook_endpoints e where failing_since is not null or paused_at is not null
group by host order by min(failing_since) limit 500
`

/** Pauses ($2 true) or resumes the endpoints of a host. Resuming makes their parked deliveries due. */
const pauseHost = `
with changed as (
  update webhook_endpoints set paused_at = case when $2 then coalesce(paused_at, now()) end,
    failing_since = case when $2 then failing_since end
  where host = $1 returning account_id, url
), requeued as (
  update deliveries set next_at = now() from changed
  where not $2 and state = 'pending' and next_at is null and lease_token is null
    and deliveries.account_id = changed.account_id and deliveries.url = changed.url
)
select from changed
`

/**
 * A node is alive while its last heartbeat is younger than 15 s; it sends three in that time. A heartbeat in the future
 * is from before the clock of the database was set back.
 */
export const nodeIsAlive = `abs(extract(epoch from now() - seen_at)) < 15`
const isSilent = `abs(extract(epoch from now() - seen_at)) > 3600`

export function makeNodeStore({ pool }: { pool: Pool }): NodeStore {
  return {
    async recordHeartbeat({ id, name, roles, version, startedAt, status, reasons, faults, engines }) {
      const values = [
        id,
        name,
        roles,
        version,
        startedAt,
        status,
        reasons,
        JSON.stringify(engines),
        JSON.stringify(faults),
      ]
      await changeRows(pool, upsertNode, values)
    },
    async removeNode(id) {
      await changeRows(pool, 'delete from nodes where id = $1', [id])
    },
    listNodes: () => listRows<NodeStatus>(pool, listNodes),
    async countWorkers() {
      return (await findRow<{ count: number }>(pool, countWorkers))?.count ?? 0
    },
    deleteSilent: () => changeRows(pool, `delete from nodes where ${isSilent}`),
  }
}

const upsertNode = `
-- name: record-heartbeat
insert into nodes (id, name, roles, version, started_at, status, reasons, engines, faults)
values ($1, $2, $3, $4, $5, $6, $7, $8, $9)
on conflict (id) do update
set seen_at = now(), status = excluded.status, reasons = excluded.reasons, engines = excluded.engines,
  faults = excluded.faults
`

const listNodes = `
select id, name, roles, version, started_at as "startedAt", seen_at as "seenAt", status, reasons, engines, faults,
  ${nodeIsAlive} as "isAlive"
from nodes order by name, started_at, id
`

const countWorkers = `
select count(*)::integer as count from nodes where 'worker' = any(roles) and ${nodeIsAlive}
`
