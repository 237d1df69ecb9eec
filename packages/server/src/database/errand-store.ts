import type { Pool } from 'pg'
import {
  type ErrandAsked,
  type ErrandEnd,
  type ErrandFailure,
  type ErrandLease,
  type ErrandNews,
  type ErrandStore,
  maxErrandAttempts,
  type NewErrand,
} from '../domain/ports/errand-store.ts'
import { makeGroupCommit } from './group-commit.ts'
import { type SourceRow, toSource } from './job-columns.ts'
import { runTransaction } from './run-transaction.ts'

const expiredAtOnce = 1000

/** `lanes` are those that this process can take errands from. */
export function makeErrandStore({ pool, lanes }: { pool: Pool; lanes: string[] }): ErrandStore {
  const inBatch = <Item, Result>(maxBatch: number, run: (items: Item[]) => Promise<Result[]>) =>
    makeGroupCommit({
      run,
      mayBeOneItemsFault: (error) => /^(22|23|40)/.test(String((error as { code?: unknown }).code)),
      maxBatch,
      maxWaiting: 20_000,
    })
  // A batch carries the contents, up to 64 KB each.
  const add = inBatch(64, (errands: NewErrand[]) => addAll(pool, errands))
  const take = inBatch(512, (ids: string[]) => takeAll(pool, ids))
  const settle = inBatch(256, (items: Settling[]) => settleAll(pool, items))

  return {
    add,
    take,
    settle: (lease, end) => settle({ lease, end }),

    async remove(id) {
      await runTransaction(pool, [{ name: 'remove-errand', text: 'delete from errands where id = $1', values: [id] }])
    },

    async claim(limit, leaseMs) {
      const { rows } = await runTransaction<ClaimedRow>(pool, [
        { name: 'claim-errands', text: claimErrands, values: [limit, leaseMs, lanes] },
      ])
      return rows.map((row) => ({ lease: { id: row.id, token: row.token }, source: toSource(row), asked: row.asked }))
    },

    async extend(leases, leaseMs) {
      const values = [leases.map(({ id }) => id), leases.map(({ token }) => token), leaseMs]
      const { rows } = await runTransaction<ErrandLease>(pool, [
        { name: 'extend-errands', text: extendErrands, values },
      ])
      return rows
    },

    async giveBack({ id, token }) {
      await runTransaction(pool, [{ name: 'give-back-errand', text: giveBackErrand, values: [id, token] }])
    },

    async deleteExpired() {
      const { rows } = await runTransaction<SourceRow>(pool, [{ name: 'delete-expired', text: deleteExpired }])
      return rows.map(toSource)
    },

    async listNeeded(keys) {
      const { rows } = await runTransaction<{ storage_key: string }>(pool, [
        { name: 'list-needed-by-errands', text: listNeeded, values: [keys] },
      ])
      return rows.map(({ storage_key }) => storage_key)
    },
  }
}

type ClaimedRow = SourceRow & { id: string; token: string; asked: ErrandAsked }
type Settling = { lease: ErrandLease; end: ErrandEnd }

async function addAll(pool: Pool, errands: NewErrand[]): Promise<undefined[]> {
  let sealedBytes = 0
  const sealed: Buffer[] = []
  const rows = errands.map(({ id, lane, asked, source, ttlMs }) => {
    const bytes = source.at === 'row' ? source.sealed.length : null
    // The database counts from 1.
    const from = sealedBytes + 1
    if (source.at === 'row') sealed.push(source.sealed)
    sealedBytes += bytes ?? 0
    return {
      ...{ id, lane, asked, ttl_ms: ttlMs, sealed_from: from, sealed_bytes: bytes },
      storage_key: source.at === 'storage' ? source.key : null,
      url: source.at === 'url' ? source.url : null,
    }
  })
  await pool.query({ name: 'add-errands', text: addErrands, values: [JSON.stringify(rows), Buffer.concat(sealed)] })
  return errands.map(() => undefined)
}

type NewsRow = {
  id: string
  outcome: unknown
  failure: ErrandFailure | null
  attempts: number
  free_ms: number
}

async function takeAll(pool: Pool, ids: string[]): Promise<ErrandNews[]> {
  const { rows } = await runTransaction<NewsRow>(pool, [{ name: 'take-errands', text: takeErrands, values: [ids] }])
  const found = new Map(rows.map((row) => [row.id, row]))
  return ids.map((id) => toNews(found.get(id)))
}

function toNews(row: NewsRow | undefined): ErrandNews {
  if (row === undefined) return { state: 'missing' }
  if (row.failure !== null) return { state: 'failed', failure: row.failure }
  if (row.outcome !== null) return { state: 'done', outcome: row.outcome }
  return { state: 'open', attempts: row.attempts, freeMs: row.free_ms }
}

async function settleAll(pool: Pool, items: Settling[]): Promise<boolean[]> {
  const asked = items.map(({ lease, end }) => ({ ...lease, ...end }))
  const { rows } = await runTransaction<{ id: string }>(pool, [
    { name: 'settle-errands', text: settleErrands, values: [JSON.stringify(asked)] },
  ])
  const settled = new Set(rows.map(({ id }) => id))
  return items.map(({ lease }) => settled.has(lease.id))
}

const addErrands = `
insert into errands (id, lane, asked, sealed, storage_key, url, expires_at)
select id, lane, asked, substring($2::bytea from sealed_from for sealed_bytes), storage_key, url,
  now() + ttl_ms * interval '1 millisecond'
from json_to_recordset($1::json) as errand (
  id uuid, lane text, asked json, sealed_from integer, sealed_bytes integer, storage_key text, url text, ttl_ms integer
)
`

/** Rows of several are locked in one order everywhere: their worker and who waits for them come at the same time. */
const takeErrands = `
with ended as (
  delete from errands where id = any(array(
    select id from errands where id = any($1::uuid[]) and num_nonnulls(outcome, failure) > 0 order by id for update
  ))
  returning id, outcome, failure
)
select id, ended.outcome, ended.failure, attempts,
  (extract(epoch from clock_timestamp() - coalesce(held_until, created_at)) * 1000)::integer as free_ms
from errands left join ended using (id)
where id = any($1::uuid[])
`

const claimErrands = `
update errands set attempts = attempts + 1, lease_token = gen_random_uuid(),
  held_until = now() + $2::integer * interval '1 millisecond'
where id = any(array(
  select id from errands
  where outcome is null and failure is null and lane = any($3::text[]) and attempts < ${maxErrandAttempts}
    and coalesce(held_until <= now(), true) and expires_at > now()
  order by created_at limit $1::integer for update skip locked
))
returning id, lease_token as token, asked, sealed, storage_key, url
`

const extendErrands = `
with held as materialized (
  select errands.id
  from errands join unnest($1::uuid[], $2::uuid[]) as lease (id, token) on lease.id = errands.id
  where lease.token = errands.lease_token
  order by errands.id for update of errands
)
update errands set held_until = now() + $3::integer * interval '1 millisecond'
where id = any(array(select id from held))
returning id, lease_token as token
`

const settleErrands = `
with ended as materialized (
  select * from json_to_recordset($1::json) as ended (id uuid, token uuid, outcome json, failure text)
),
held as materialized (
  select errands.id from errands join ended on ended.id = errands.id
  where ended.token = errands.lease_token and num_nonnulls(errands.outcome, errands.failure) = 0
  order by errands.id for update of errands
)
update errands set outcome = ended.outcome, failure = ended.failure from ended
where errands.id = ended.id and errands.id = any(array(select id from held))
returning errands.id
`

const giveBackErrand = `
update errands set attempts = attempts - 1, lease_token = null, held_until = now() where id = $1 and lease_token = $2
`

const deleteExpired = `
delete from errands where id = any(array(
  select id from errands where expires_at < now() order by expires_at limit ${expiredAtOnce} for update skip locked
))
returning sealed, storage_key, url
`

const listNeeded = `select storage_key from errands where storage_key = any($1::text[])`
