import type { Pool } from 'pg'
import type { FailingHost, JobSeen, Operations } from '../../domain/ports/operations.ts'

const state = `case when lease_token is not null and held_until > now() then 'running'
  when held_until > now() then 'paused' else 'waiting' end`

export function makeOperations({ pool }: { pool: Pool }): Operations {
  return {
    async listJobs({ state: wanted, stuckSince, after, limit }) {
      const { rows } = await pool.query<JobSeen>(
        `select scan_id as id, jobs.account_id as "accountId", accounts.name as "accountName", scans.kind, ${state} as state,
           attempts, content_length::float8 as "contentLength", jobs.created_at as "createdAt", held_until as "heldUntil"
         from jobs join scans on scans.id = scan_id join accounts on accounts.id = jobs.account_id
         where ($1::text is null or ${state} = $1
             or ($1 = 'stuck' and (attempts > 1 or jobs.created_at < $2) and ${state} <> 'running'))
           and ($3::uuid is null or scan_id > $3)
         order by scan_id limit $4`,
        [wanted ?? null, stuckSince, after ?? null, limit],
      )
      return rows
    },
    async releaseJob(id) {
      const { rowCount } = await pool.query(
        'update jobs set held_until = null where scan_id = $1 and lease_token is null and held_until is not null',
        [id],
      )
      return rowCount === 1
    },
    async listFailingHosts(since) {
      const { rows } = await pool.query<FailingHost>(
        `select host, count(distinct url)::int as endpoints, min(failing_since) as "failingSince",
           bool_or(paused_at is not null) as paused,
           (select count(*)::int from deliveries d where d.host = e.host and state = 'pending' and created_at >= $1) as waiting,
           (select count(*)::int from deliveries d where d.host = e.host and state = 'dead' and created_at >= $1) as dead
         from webhook_endpoints e where failing_since is not null or paused_at is not null
         group by host order by min(failing_since) limit 500`,
        [since],
      )
      return rows
    },
    async pauseHost(host, paused) {
      const { rowCount } = await pool.query(
        `with touched as (
           update webhook_endpoints set paused_at = case when $2 then coalesce(paused_at, now()) end,
             failing_since = case when $2 then failing_since end
           where host = $1 returning account_id, url
         ), due as (
           update deliveries set next_at = now() from touched
           where not $2 and state = 'pending' and next_at is null and lease_token is null
             and deliveries.account_id = touched.account_id and deliveries.url = touched.url
         )
         select from touched`,
        [host, paused],
      )
      return Number(rowCount)
    },
    async listFailedAt(host, since, limit) {
      const { rows } = await pool.query<{ id: string }>(
        `select id from deliveries where host = $1 and state in ('dead', 'stopped') and created_at >= $2
         order by created_at limit $3`,
        [host, since, limit],
      )
      return rows.map(({ id }) => id)
    },
    async describeDatabase() {
      const { rows } = await pool.query<{ version: string; bytes: number; connections: number }>(
        `select current_setting('server_version') as version, pg_database_size(current_database())::float8 as bytes,
           (select count(*)::int from pg_stat_activity where datname = current_database()) as connections`,
      )
      return rows[0] ?? { version: '', bytes: 0, connections: 0 }
    },
  }
}
