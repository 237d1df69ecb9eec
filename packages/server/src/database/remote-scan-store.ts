import type { Pool } from 'pg'
import {
  maxRemoteScanAttempts,
  type NewRemoteScan,
  type RemoteScanEnd,
  type RemoteScanFailure,
  type RemoteScanLease,
  type RemoteScanOptions,
  type RemoteScanState,
  type RemoteScanStore,
} from '../domain/ports/remote-scan-store.ts'
import { makeGroupCommit } from './group-commit.ts'
import { type SourceRow, toSource } from './job-columns.ts'
import { runTransaction } from './run-transaction.ts'

const expiredAtOnce = 1000

/** `queues` are those that this process can take remote scans from. */
export function makeRemoteScanStore({ pool, queues }: { pool: Pool; queues: string[] }): RemoteScanStore {
  const inBatch = <Item, Result>(maxBatch: number, run: (items: Item[]) => Promise<Result[]>) =>
    makeGroupCommit({
      run,
      mayBeOneItemsFault: (error) => /^(22|23|40)/.test(String((error as { code?: unknown }).code)),
      maxBatch,
      maxWaiting: 20_000,
    })
  // A batch carries the contents, up to 64 KB each.
  const add = inBatch(64, (remoteScans: NewRemoteScan[]) => addAll(pool, remoteScans))
  const take = inBatch(512, (ids: string[]) => takeAll(pool, ids))
  const complete = inBatch(256, (items: Settling[]) => completeAll(pool, items))

  return {
    add,
    take,
    complete: (lease, end) => complete({ lease, end }),

    async remove(id) {
      await runTransaction(pool, [
        { name: 'remove-remote-scan', text: 'delete from remote_scans where id = $1', values: [id] },
      ])
    },

    async claim(limit, leaseMs) {
      const { rows } = await runTransaction<ClaimedRow>(pool, [
        { name: 'claim-remote-scans', text: claimRemoteScans, values: [limit, leaseMs, queues] },
      ])
      return rows.map((row) => ({
        lease: { id: row.id, token: row.token },
        source: toSource(row),
        options: row.options,
      }))
    },

    async extend(leases, leaseMs) {
      const values = [leases.map(({ id }) => id), leases.map(({ token }) => token), leaseMs]
      const { rows } = await runTransaction<RemoteScanLease>(pool, [
        { name: 'extend-remote-scans', text: extendRemoteScans, values },
      ])
      return rows
    },

    async release({ id, token }) {
      await runTransaction(pool, [{ name: 'release-remote-scan', text: releaseRemoteScan, values: [id, token] }])
    },

    async deleteExpired() {
      const { rows } = await runTransaction<SourceRow>(pool, [{ name: 'delete-expired', text: deleteExpired }])
      return rows.map(toSource)
    },

    async listNeeded(keys) {
      const { rows } = await runTransaction<{ storage_key: string }>(pool, [
        { name: 'list-needed-by-remote-scans', text: listNeeded, values: [keys] },
      ])
      return rows.map(({ storage_key }) => storage_key)
    },
  }
}

type ClaimedRow = SourceRow & { id: string; token: string; options: RemoteScanOptions }
type Settling = { lease: RemoteScanLease; end: RemoteScanEnd }

async function addAll(pool: Pool, remoteScans: NewRemoteScan[]): Promise<undefined[]> {
  let sealedBytes = 0
  const sealed: Buffer[] = []
  const rows = remoteScans.map(({ id, queue, options, source, ttlMs }) => {
    const bytes = source.at === 'row' ? source.sealed.length : null
    // The database counts from 1.
    const from = sealedBytes + 1
    if (source.at === 'row') sealed.push(source.sealed)
    sealedBytes += bytes ?? 0
    return {
      ...{ id, queue, options, ttl_ms: ttlMs, sealed_from: from, sealed_bytes: bytes },
      storage_key: source.at === 'storage' ? source.key : null,
      url: source.at === 'url' ? source.url : null,
    }
  })
  await pool.query({
    name: 'add-remote-scans',
    text: addRemoteScans,
    values: [JSON.stringify(rows), Buffer.concat(sealed)],
  })
  return remoteScans.map(() => undefined)
}

type NewsRow = {
  id: string
  result: unknown
  failure: RemoteScanFailure | null
  attempts: number
  free_ms: number
}

async function takeAll(pool: Pool, ids: string[]): Promise<RemoteScanState[]> {
  const { rows } = await runTransaction<NewsRow>(pool, [
    { name: 'take-remote-scans', text: takeRemoteScans, values: [ids] },
  ])
  const found = new Map(rows.map((row) => [row.id, row]))
  return ids.map((id) => toNews(found.get(id)))
}

function toNews(row: NewsRow | undefined): RemoteScanState {
  if (row === undefined) return { state: 'missing' }
  if (row.failure !== null) return { state: 'failed', failure: row.failure }
  if (row.result !== null) return { state: 'done', result: row.result }
  return { state: 'open', attempts: row.attempts, freeMs: row.free_ms }
}

async function completeAll(pool: Pool, items: Settling[]): Promise<boolean[]> {
  const asked = items.map(({ lease, end }) => ({ ...lease, ...end }))
  const { rows } = await runTransaction<{ id: string }>(pool, [
    { name: 'complete-remote-scans', text: completeRemoteScans, values: [JSON.stringify(asked)] },
  ])
  const completed = new Set(rows.map(({ id }) => id))
  return items.map(({ lease }) => completed.has(lease.id))
}

const addRemoteScans = `
insert into remote_scans (id, queue, options, sealed, storage_key, url, expires_at)
select id, queue, options, substring($2::bytea from sealed_from for sealed_bytes), storage_key, url,
  now() + ttl_ms * interval '1 millisecond'
from json_to_recordset($1::json) as remote_scan (
  id uuid, queue text, options json, sealed_from integer, sealed_bytes integer, storage_key text, url text, ttl_ms integer
)
`

/** Rows of several are locked in one order everywhere: their worker and who waits for them come at the same time. */
const takeRemoteScans = `
with ended as (
  delete from remote_scans where id = any(array(
    select id from remote_scans where id = any($1::uuid[]) and num_nonnulls(result, failure) > 0 order by id for update
  ))
  returning id, result, failure
)
select id, ended.result, ended.failure, attempts,
  (extract(epoch from clock_timestamp() - coalesce(held_until, created_at)) * 1000)::integer as free_ms
from remote_scans left join ended using (id)
where id = any($1::uuid[])
`

const claimRemoteScans = `
update remote_scans set attempts = attempts + 1, lease_token = gen_random_uuid(),
  held_until = now() + $2::integer * interval '1 millisecond'
where id = any(array(
  select id from remote_scans
  where result is null and failure is null and queue = any($3::text[]) and attempts < ${maxRemoteScanAttempts}
    and coalesce(held_until <= now(), true) and expires_at > now()
  order by created_at limit $1::integer for update skip locked
))
returning id, lease_token as token, options, sealed, storage_key, url
`

const extendRemoteScans = `
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

const completeRemoteScans = `
with ended as materialized (
  select * from json_to_recordset($1::json) as ended (id uuid, token uuid, result json, failure text)
),
held as materialized (
  select remote_scans.id from remote_scans join ended on ended.id = remote_scans.id
  where ended.token = remote_scans.lease_token and num_nonnulls(remote_scans.result, remote_scans.failure) = 0
  order by remote_scans.id for update of remote_scans
)
update remote_scans set result = ended.result, failure = ended.failure from ended
where remote_scans.id = ended.id and remote_scans.id = any(array(select id from held))
returning remote_scans.id
`

const releaseRemoteScan = `
update remote_scans set attempts = attempts - 1, lease_token = null, held_until = now() where id = $1 and lease_token = $2
`

const deleteExpired = `
delete from remote_scans where id = any(array(
  select id from remote_scans where expires_at < now() order by expires_at limit ${expiredAtOnce} for update skip locked
))
returning sealed, storage_key, url
`

const listNeeded = `select storage_key from remote_scans where storage_key = any($1::text[])`
