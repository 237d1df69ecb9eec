import type { Pool } from 'pg'
import type { Attempt, Delivery, DeliveryStore, Endpoint } from '../domain/ports/delivery-store.ts'
import { deliveryLock } from './delivery-claim-statement.ts'
import { runTransaction } from './run-transaction.ts'

type DeliveryAdmin = Pick<
  DeliveryStore,
  'listDeliveries' | 'findDelivery' | 'replay' | 'listEndpoints' | 'resumeEndpoint' | 'deleteOld'
>

/** What operators and the sweeper do with deliveries. */
export function makeDeliveryAdmin({ pool }: { pool: Pool }): DeliveryAdmin {
  return {
    async listDeliveries({ accountId, state, limit, scanId, before }) {
      const { rows } = await pool.query<DeliveryRow>(listDeliveries, [accountId, state, limit, scanId, before])
      return rows.map(toDelivery)
    },

    async findDelivery(id) {
      const { rows } = await pool.query<DeliveryRow & { body: string }>(findDelivery, [id])
      const [row] = rows
      if (row === undefined) return undefined
      const log = await pool.query<AttemptRow>(listAttempts, [id])
      return { ...toDelivery(row), body: row.body, log: log.rows.map(toAttempt) }
    },

    async replay(which) {
      const statement =
        'id' in which
          ? { text: replayOne, values: [which.id] }
          : { text: replayFailed, values: [which.failedSince, which.accountId] }
      const { rows } = await runTransaction<{ replayed: number }>(pool, [statement], { lock: deliveryLock })
      return rows[0]?.replayed ?? 0
    },

    async listEndpoints({ accountId }) {
      const { rows } = await pool.query<EndpointRow>(listEndpoints, [accountId])
      return rows.map(toEndpoint)
    },

    async resumeEndpoint(accountId, url) {
      const values = [accountId, url]
      const { rows } = await runTransaction<{ resumed: boolean }>(pool, [{ text: resumeEndpoint, values }], {
        lock: deliveryLock,
      })
      return rows[0]?.resumed ?? false
    },

    async deleteOld(before) {
      let deleted = 0
      for (;;) {
        const { rows } = await runTransaction<{ deleted: number }>(pool, [{ text: deleteOld, values: [before] }])
        deleted += rows[0]?.deleted ?? 0
        if ((rows[0]?.deleted ?? 0) < deleteAtOnce) break
      }
      await pool.query(deleteOldEndpoints, [before])
      return deleted
    },
  }
}

const columns = 'id, scan_id, account_id, url, state, attempts, created_at, next_at, last_status'

const listDeliveries = `
select ${columns} from deliveries
where ($1::uuid is null or account_id = $1) and ($2::text is null or state = $2) and ($4::uuid is null or scan_id = $4)
  and ($5::uuid is null or (created_at, id) < (select created_at, id from deliveries where id = $5))
order by created_at desc, id desc limit $3
`

const findDelivery = `select ${columns}, body from deliveries where id = $1`

const listAttempts = `
select at, status, duration_ms, answer from delivery_attempts where delivery_id = $1 order by id
`

/** Paused no more, and what was put aside for it is due. Its failures are forgotten: the next would pause it at once. */
const resume = (endpoints: string, except: string) => `
resumed as (
  update webhook_endpoints set paused_at = null, failing_since = null
  where paused_at is not null and (account_id, url) in (${endpoints})
  returning account_id, url
),
taken_up as (
  update deliveries set next_at = now()
  where state = 'pending' and next_at is null and (account_id, url) in (select account_id, url from resumed) ${except}
)`

/** One that is under way is not sent twice; but what comes of it counts as the first attempt. */
const replay = (which: string) => `
with replayed as (
  update deliveries set state = 'pending', attempts = 0,
    next_at = case when lease_token is not null and next_at > now() then next_at else now() end,
    lease_token = case when next_at > now() then lease_token end
  where ${which}
  returning id, account_id, url
),
${resume('select account_id, url from replayed', 'and id not in (select id from replayed)')}
select count(*)::integer as replayed from replayed
`

const replayOne = replay('id = $1')

const replayFailed = replay(`($2::uuid is null or account_id = $2) and case state
    when 'pending' then next_at is null and created_at >= $1
    when 'delivered' then false
    else last_attempt_at >= $1 end`)

const resumeEndpoint = `
with ${resume('values ($1::uuid, $2::text)', '')}
select count(*) > 0 as resumed from resumed
`

const listEndpoints = `
select account_id, url, failing_since, last_success_at, paused_at, coalesce(waiting, 0)::integer as waiting
from webhook_endpoints
left join (
  select account_id, url, count(*) as waiting from deliveries where state = 'pending' group by account_id, url
) as pending using (account_id, url)
where $1::uuid is null or account_id = $1
order by paused_at, failing_since, last_attempt_at desc limit 1000
`

const deleteAtOnce = 5000

const deleteOld = `
with deleted as (
  delete from deliveries where id = any(array(
    select id from deliveries where created_at < $1 and next_at is null limit ${deleteAtOnce} for update skip locked
  ))
  returning id
),
forgotten as (
  delete from delivery_attempts where delivery_id = any(array(select id from deleted))
)
select count(*)::integer as deleted from deleted
`

/** One that is paused waits for an operator. */
const deleteOldEndpoints = 'delete from webhook_endpoints where last_attempt_at < $1 and paused_at is null'

type DeliveryRow = Pick<Delivery, 'id' | 'url' | 'state' | 'attempts'> & {
  scan_id: string
  account_id: string
  created_at: Date
  next_at: Date | null
  last_status: number | null
}

const toDelivery = (row: DeliveryRow): Delivery => ({
  id: row.id,
  scanId: row.scan_id,
  accountId: row.account_id,
  url: row.url,
  state: row.state,
  attempts: row.attempts,
  createdAt: row.created_at,
  nextAt: row.next_at,
  lastStatus: row.last_status,
})

type AttemptRow = Pick<Attempt, 'at' | 'status' | 'answer'> & { duration_ms: number }

const toAttempt = ({ duration_ms, ...row }: AttemptRow): Attempt => ({ ...row, durationMs: duration_ms })

type EndpointRow = {
  account_id: string
  url: string
  failing_since: Date | null
  last_success_at: Date | null
  paused_at: Date | null
  waiting: number
}

const toEndpoint = (row: EndpointRow): Endpoint => ({
  accountId: row.account_id,
  url: row.url,
  failingSince: row.failing_since,
  lastSuccessAt: row.last_success_at,
  pausedAt: row.paused_at,
  waiting: row.waiting,
})
