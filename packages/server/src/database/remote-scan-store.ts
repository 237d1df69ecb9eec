import type { Pool } from 'pg'
import {
  maxRemoteScanAttempts,
  type NewRemoteScan,
  type RemoteScanCompletion,
  type RemoteScanFailure,
  type RemoteScanLease,
  type RemoteScanOptions,
  type RemoteScanState,
  type RemoteScanStore,
} from '../domain/ports/job-store.ts'
import { makeGroupCommit } from './group-commit.ts'
import { changeRows, listRows, runStatement } from './query.ts'
import { newSealedContents, type SourceRow, sourceFields, toSource } from './scan-store.ts'

/** `listQueues` lists the queues that this process can claim remote scans from at the moment. */
export function makeRemoteScanStore({ pool, listQueues }: { pool: Pool; listQueues(): string[] }): RemoteScanStore {
  // A batch of new remote scans carries their contents, up to 64 KB each, so it is smaller.
  const add = makeGroupCommit({ run: (remoteScans: NewRemoteScan[]) => addAll(pool, remoteScans), maxBatch: 64 })
  const take = makeGroupCommit({ run: (ids: string[]) => takeAll(pool, ids), maxBatch: 512 })
  const complete = makeGroupCommit({ run: (items: CompletedItem[]) => completeAll(pool, items), maxBatch: 256 })

  return {
    add,
    take,
    complete: (lease, completion) => complete({ lease, completion }),

    async remove(id) {
      await changeRows(pool, removeStatement, [id])
    },

    async claim(limit, leaseMs) {
      const rows = await listRows<ClaimedRow>(pool, claimStatement, [limit, leaseMs, listQueues()])
      return rows.map((row) => ({
        lease: { id: row.id, token: row.token },
        source: toSource(row),
        options: row.options,
      }))
    },

    extend: (leases, leaseMs) =>
      listRows<RemoteScanLease>(pool, extendStatement, [
        leases.map(({ id }) => id),
        leases.map(({ token }) => token),
        leaseMs,
      ]),

    async release({ id, token }) {
      await changeRows(pool, releaseStatement, [id, token])
    },

    async deleteExpired() {
      return (await listRows<SourceRow>(pool, deleteExpiredStatement)).map(toSource)
    },

    async listNeeded(keys) {
      return (await listRows<{ key: string }>(pool, listNeededStatement, [keys])).map(({ key }) => key)
    },
  }
}

type ClaimedRow = SourceRow & RemoteScanLease & { options: RemoteScanOptions }
type CompletedItem = { lease: RemoteScanLease; completion: RemoteScanCompletion }

async function addAll(pool: Pool, remoteScans: NewRemoteScan[]): Promise<undefined[]> {
  const contents = newSealedContents()
  const records = remoteScans.map(({ id, queue, options, source, ttlMs }) => ({
    ...contents.add(source),
    id,
    queue,
    options,
    ttl_ms: ttlMs,
  }))
  await changeRows(pool, addStatement, [JSON.stringify(records), contents.toParameter()])
  return remoteScans.map(() => undefined)
}

type StateRow = {
  id: string
  result: unknown
  failure: RemoteScanFailure | null
  attempts: number
  freeMs: number
}

async function takeAll(pool: Pool, ids: string[]): Promise<RemoteScanState[]> {
  const { rows } = await runStatement<StateRow>(pool, takeStatement, [ids])
  const found = new Map(rows.map((row) => [row.id, row]))
  return ids.map((id) => toState(found.get(id)))
}

function toState(row: StateRow | undefined): RemoteScanState {
  if (row === undefined) return { state: 'missing' }
  if (row.failure !== null) return { state: 'failed', failure: row.failure }
  if (row.result !== null) return { state: 'done', result: row.result }
  return { state: 'open', attempts: row.attempts, freeMs: row.freeMs }
}

async function completeAll(pool: Pool, items: CompletedItem[]): Promise<boolean[]> {
  const records = items.map(({ lease, completion }) => ({ ...lease, ...completion }))
  const { rows } = await runStatement<{ id: string }>(pool, completeStatement, [JSON.stringify(records)])
  const completed = new Set(rows.map(({ id }) => id))
  return items.map(({ lease }) => completed.has(lease.id))
}

const addStatement = `
-- name: add-remote-scans
insert into remote_scans (id, queue, options, sealed, storage_key, url, expires_at)
select id, queue, options, substring($2::bytea from sealed_from for sealed_bytes), storage_key, url,
  now() + ttl_ms * interval '1 millisecond'
from json_to_recordset($1::json) as remote_scan (
  id uuid, queue text, options json, sealed_from integer, sealed_bytes integer, storage_key text, url text,
  ttl_ms integer
)
`

/**
 * Returns the state of each remote scan and deletes those that are done. All statements lock rows in the order of ids,
 * because the worker and the waiting node use the same rows at the same time.
 */
const takeStatement = `
-- name: take-remote-scans
with done as (
  delete from remote_scans where id = any(array(
    select id from remote_scans where id = any($1::uuid[]) and num_nonnulls(result, failure) > 0 order by id for update
  ))
  returning id, result, failure
)
select id, done.result, done.failure, attempts,
  (extract(epoch from clock_timestamp() - coalesce(held_until, created_at)) * 1000)::integer as "freeMs"
from remote_scans left join done using (id)
where id = any($1::uuid[])
`

const claimStatement = `
-- name: claim-remote-scans
update remote_scans set attempts = attempts + 1, lease_token = gen_random_uuid(),
  held_until = now() + $2::integer * interval '1 millisecond'
where id = any(array(
  select id from remote_scans
  where result is null and failure is null and queue = any($3::text[]) and attempts < ${maxRemoteScanAttempts}
    and coalesce(held_until <= now(), true) and expires_at > now()
  order by created_at limit $1::integer for update skip locked
))
returning id, lease_token as token, options, ${sourceFields}
`

const extendStatement = `
-- name: extend-remote-scan-leases
with held as materialized (
  select remote_scans.id
  from remote_scans join unnest($1::uuid[], $2::uuid[]) as lease (id, token) on lease.id = remote_scans.id
  where lease.token = remote_scans.lease_token
  order by remote_scans.id for update of remote_scans
)
update remote_scans set held_until = now() + $3::integer * interval '1 millisecond'
where id = any(array(select id from held))
returning id, lease_token as token
`

const completeStatement = `
-- name: complete-remote-scans
with done as materialized (
  select * from json_to_recordset($1::json) as completion (id uuid, token uuid, result json, failure text)
),
held as materialized (
  select remote_scans.id from remote_scans join done on done.id = remote_scans.id
  where done.token = remote_scans.lease_token and num_nonnulls(remote_scans.result, remote_scans.failure) = 0
  order by remote_scans.id for update of remote_scans
)
update remote_scans set result = done.result, failure = done.failure from done
where remote_scans.id = done.id and remote_scans.id = any(array(select id from held))
returning remote_scans.id
`

const releaseStatement = `
-- name: release-remote-scan
update remote_scans set attempts = attempts - 1, lease_token = null, held_until = now()
where id = $1 and lease_token = $2
`

const removeStatement = `
-- name: remove-remote-scan
delete from remote_scans where id = $1
`

const deleteExpiredStatement = `
-- name: delete-expired-remote-scans
delete from remote_scans where id = any(array(
  -- No caller waits for an hour: such a row is from before the clock of the database was set back.
  select id from remote_scans where expires_at < now() or expires_at > now() + interval '1 hour'
  order by expires_at limit 1000 for update skip locked
))
returning ${sourceFields}
`

const listNeededStatement = `
-- name: list-needed-by-remote-scans
select storage_key as key from remote_scans where storage_key = any($1::text[])
`
