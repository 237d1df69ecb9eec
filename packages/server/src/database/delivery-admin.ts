import type { Pool } from 'pg'
import type {
  DeliveriesSince,
  Delivery,
  DeliveryStore,
  Endpoint,
  LoggedAttempt,
} from '../domain/ports/delivery-store.ts'
import {
  changeRows,
  findRow,
  inTransaction,
  listPage,
  listRows,
  type Queryable,
  runInPieces,
  toPage,
  toTimeAgo,
} from './query.ts'

/** Advisory lock: deliveries are not claimed, and so none is parked, while an endpoint is being resumed. */
export const deliveryLock = 52_115_003

type DeliveryAdmin = Pick<
  DeliveryStore,
  'listDeliveries' | 'listSince' | 'findDelivery' | 'replay' | 'listEndpoints' | 'resumeEndpoint' | 'deleteOld'
>

/** The part of the delivery store that operators and the sweeper use. */
export function makeDeliveryAdmin({ pool }: { pool: Pool }): DeliveryAdmin {
  return {
    listDeliveries: ({ accountId, state, limit, scanId, before }) =>
      listPage<Delivery>(pool, listDeliveries, [accountId, state, limit, scanId, before]),

    async listSince({ accountId, isTest, since }) {
      const rows = await listRows<SinceRow>(pool, listSince, [accountId, isTest, since])
      const deliveries = rows.filter((row) => row.id !== null)
      const last = deliveries.length < sinceLimit ? rows[0]?.until : deliveries.at(-1)?.madeAt
      return { until: last ?? '', deliveries }
    },

    async findDelivery(id) {
      const text = `select ${fields}, body from deliveries where id = $1`
      const delivery = await findRow<Delivery & { body: string }>(pool, text, [id])
      return delivery && { ...delivery, log: await listRows<LoggedAttempt>(pool, listAttempts, [id]) }
    },

    async replay(selection) {
      const replay = (client: Queryable) =>
        'ids' in selection
          ? findRow<{ replayed: number }>(client, replayListed, [selection.ids])
          : findRow<{ replayed: number }>(client, replayFailed, [selection.failedSince, selection.accountId])
      return (await inTransaction(pool, replay, { lock: deliveryLock }))?.replayed ?? 0
    },

    listEndpoints: ({ accountId }) => listRows<Endpoint>(pool, listEndpoints, [accountId]),

    async resumeEndpoint(accountId, url) {
      const resume = (client: Queryable) => findRow<{ resumed: boolean }>(client, resumeEndpoint, [accountId, url])
      return (await inTransaction(pool, resume, { lock: deliveryLock }))?.resumed ?? false
    },

    async deleteOld(ageMs) {
      const deletePiece = async () => (await findRow<{ deleted: number }>(pool, deleteOld, [ageMs]))?.deleted ?? 0
      const deleted = await runInPieces(deletePieceSize, deletePiece)
      await runInPieces(endpointPieceSize, () => changeRows(pool, deleteOldEndpoints, [ageMs]))
      return deleted
    },
  }
}

const fields = `id, scan_id as "scanId", account_id as "accountId", url, state, attempts, created_at as "createdAt",
  next_at as "nextAt", last_status as "lastStatus"`

const page = toPage('deliveries', { columns: ['created_at', 'id'], order: 'desc', cursor: '$5::uuid', limit: '$3' })

const listDeliveries = `
select ${fields} from deliveries
where ($1::uuid is null or account_id = $1) and ($2::text is null or state = $2) and ($4::uuid is null or scan_id = $4)
  and ${page.condition}
${page.ordering}
`

const sinceLimit = 100

type SinceRow = DeliveriesSince['deliveries'][number] & { until: string; madeAt: string }

/** Microseconds, because a batch makes hundreds of deliveries in one millisecond. */
const toCursor = (time: string) => `to_char(${time} at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')`

/** $1 the account, $2 whether of test scans, $3 the time after which deliveries were made. */
const listSince = `
select ${toCursor('settled.until')} as until, ${toCursor('found."createdAt"')} as "madeAt", found.*
from (select now() - interval '5 seconds' as until) as settled
left join lateral (
  select id, scan_id as "scanId", url, body, created_at as "createdAt" from deliveries
  where account_id = $1 and created_at > $3::timestamptz and created_at <= settled.until
    and (body::json #>> '{metadata,test}' is not null) = $2
  -- Deliveries of one batch have the same time, and a cursor between them would skip the rest.
  order by created_at fetch first ${sinceLimit} rows with ties
) as found on true
order by found."createdAt"
`

const listAttempts = `
select at, status, duration_ms as "durationMs", answer from delivery_attempts where delivery_id = $1 order by id
`

/**
 * Resumes endpoints and makes their parked deliveries due. `failing_since` is cleared;
 * otherwise the next failure would pause it again at once.
 */
const resume = (endpoints: string, except: string) => `
resumed as (
  update webhook_endpoints set paused_at = null, failing_since = null
  where paused_at is not null and (account_id, url) in (${endpoints})
  returning account_id, url
),
requeued as (
  update deliveries set next_at = now()
  where state = 'pending' and next_at is null and (account_id, url) in (select account_id, url from resumed) ${except}
)`

/** A delivery that is in flight is not sent twice; its attempt counts as the first one of the replay. */
const replay = (condition: string) => `
with replayed as (
  update deliveries set state = 'pending', attempts = 0,
    next_at = case when lease_token is not null and next_at > now() then next_at else now() end,
    lease_token = case when next_at > now() then lease_token end
  where ${condition}
  returning id, account_id, url
),
${resume('select account_id, url from replayed', 'and id not in (select id from replayed)')}
select count(*)::integer as replayed from replayed
`

const replayListed = replay('id = any($1::uuid[])')

const replayFailed = replay(`($2::uuid is null or account_id = $2) and case state
    when 'pending' then next_at is null and created_at >= $1
    when 'delivered' then false
    else last_attempt_at >= $1 end`)

const resumeEndpoint = `
with ${resume('values ($1::uuid, $2::text)', '')}
select count(*) > 0 as resumed from resumed
`

const listEndpoints = `
select account_id as "accountId", url, failing_since as "failingSince", last_success_at as "lastSuccessAt",
  paused_at as "pausedAt", coalesce(waiting, 0)::integer as waiting
from webhook_endpoints
left join (
  select account_id, url, count(*) as waiting from deliveries where state = 'pending' group by account_id, url
) as pending using (account_id, url)
where $1::uuid is null or account_id = $1
order by paused_at, failing_since, last_attempt_at desc limit 1000
`

const deletePieceSize = 5000

const deleteOld = `
with deleted as (
  delete from deliveries where id = any(array(
    select id from deliveries where created_at < ${toTimeAgo('$1')} and next_at is null limit ${deletePieceSize} for update skip locked
  ))
  returning id
),
deleted_attempts as (
  delete from delivery_attempts where delivery_id = any(array(select id from deleted))
)
select count(*)::integer as deleted from deleted
`

const endpointPieceSize = 50_000

/**
 * Deletes the records of receivers that nothing has been sent to for that long. A paused one stays while deliveries wait
 * for its resumption.
 */
const deleteOldEndpoints = `
delete from webhook_endpoints where ctid = any(array(
  select ctid from webhook_endpoints as e
  where last_attempt_at < ${toTimeAgo('$1')} and (
    paused_at is null
    or paused_at < ${toTimeAgo('$1')}
      and not exists (select from deliveries as d where d.account_id = e.account_id and d.url = e.url)
  )
  limit ${endpointPieceSize} for update skip locked
))`
