import type { Pool } from 'pg'
import type { Attempt, ClaimedDelivery, DeliveryStore, NextDeliveryState } from '../domain/ports/delivery-store.ts'
import type { Sealer } from '../domain/ports/secret-store.ts'
import { deliveryLock, makeDeliveryAdmin } from './delivery-admin.ts'
import { makeGroupCommit } from './group-commit.ts'
import { changeRows, findRow, inTransaction, listRows, runStatement, withoutDiskWait } from './query.ts'
import { openWebhookSecrets, type SealedSecrets } from './secret-stores.ts'

export function makeDeliveryStore({ pool, sealer }: { pool: Pool; sealer: Sealer }): DeliveryStore {
  let lastServed = ''

  const recordInBatch = makeGroupCommit({ run: (items: RecordedItem[]) => recordAll(pool, items), maxBatch: 256 })

  return {
    ...makeDeliveryAdmin({ pool }),

    async claim({ limit, perHost, leaseMs }) {
      const rows = await inTransaction(
        pool,
        async (client) => {
          await changeRows(client, parkStatement)
          return listRows<ClaimedRow>(client, claimStatement, [limit, perHost, leaseMs, lastServed])
        },
        { settings: withoutDiskWait, lock: deliveryLock },
      )
      lastServed = rows.at(-1)?.host ?? lastServed
      return Promise.all(
        rows.map(async ({ host, secret, previousSecret, ...claimed }) => {
          // Secrets that cannot be opened fail the deliveries of their account, not those of others.
          const opening = openWebhookSecrets(sealer, claimed.accountId, { secret, previousSecret })
          return { ...claimed, secrets: await opening.catch(() => []) }
        }),
      )
    },

    recordAttempt: ({ id, token }, attempt, next, pauseAfterMs) =>
      recordInBatch({ id, token, attempt, next, pauseAfterMs }),

    async findNextDueMs() {
      return (await findRow<{ ms: number | null }>(pool, findNextDueStatement))?.ms ?? undefined
    },

    async countDeliveries() {
      const row = await findRow<{ waiting: number; lateSeconds: number }>(pool, countStatement)
      return row ?? { waiting: 0, lateSeconds: 0 }
    },
  }
}

type ClaimedRow = Omit<ClaimedDelivery, 'secrets'> & SealedSecrets & { accountId: string; host: string }

type RecordedItem = Pick<ClaimedDelivery, 'id' | 'token'> & {
  attempt: Attempt
  next: NextDeliveryState
  pauseAfterMs: number
}

async function recordAll(pool: Pool, items: RecordedItem[]): Promise<boolean[]> {
  const records = items.map(({ id, token, attempt, next }, i) => ({
    i,
    id,
    token,
    status: attempt.status,
    duration_ms: Math.round(attempt.durationMs),
    answer: toStorableText(attempt.answer),
    state: next.state,
    pause_ms: next.state === 'pending' ? next.pauseMs : null,
  }))
  const pauseAfterMs = Math.min(...items.map((item) => item.pauseAfterMs))
  const values = [JSON.stringify(records), pauseAfterMs]
  const { rows } = await runStatement<{ i: number }>(pool, recordAttemptsStatement, values)
  const recorded = new Set(rows.map(({ i }) => i))
  return items.map((_, i) => recorded.has(i))
}

/** Receivers answer anything; PostgreSQL stores neither NUL nor half of a surrogate pair. */
const toStorableText = (answer: string) => answer.replaceAll('\0', '\ufffd').toWellFormed()

/**
 * Takes deliveries to paused endpoints out of the queue, so that claims need not step over them. Each
 * statement parks the first thousand of a host; the others follow when they come to the front.
 */
const parkStatement = `
-- name: park-deliveries
with parked as materialized (
  select due.id from webhook_endpoints as paused
  cross join lateral (
    select id, account_id, url from deliveries
    where deliveries.host = paused.host and next_at <= now() order by next_at limit 1000
  ) as due
  where paused.paused_at is not null and due.account_id = paused.account_id and due.url = paused.url
)
update deliveries set next_at = null, lease_token = null
where id = any(array(select id from parked))
`

/** Every host with deliveries to come, and the time of its first one, found by skipping through the index. */
const eachHost = `
with recursive host (host, next_at) as (
  (select host, next_at from deliveries where next_at is not null order by host, next_at limit 1)
  union all
  select next.host, next.next_at
  from host cross join lateral (
    select deliveries.host, deliveries.next_at from deliveries
    where deliveries.next_at is not null and deliveries.host > host.host
    order by deliveries.host, deliveries.next_at limit 1
  ) as next
)`

/**
 * Hosts take turns, beginning after the one that was served last ($4). A host gets only as many deliveries as it has
 * free places, over all processes. This is exact because claims wait for each other (`deliveryLock`).
 *
 * $1 the most deliveries to claim, $2 places of a host, $3 lease in milliseconds.
 */
const claimStatement = `
-- name: claim-deliveries
${eachHost},
free_host as materialized (
  select host.host, $2::integer - leased.n as free, row_number() over (order by host.host <= $4::text, host.host) as n
  from host cross join lateral (
    select count(*)::integer as n from deliveries
    where deliveries.host = host.host and lease_token is not null and deliveries.next_at > now()
  ) as leased
  where host.next_at <= now() and leased.n < $2::integer
),
ready as materialized (
  select due.id, n, row_number() over (partition by n order by due.next_at, due.id) as turn
  from free_host cross join lateral (
    select id, next_at from deliveries
    where deliveries.host = free_host.host and next_at <= now()
      -- A subquery for each delivery, not a join: a join would collect all deliveries of a host before taking the
      -- first.
      and (
        select e.paused_at from webhook_endpoints as e
        where e.account_id = deliveries.account_id and md5(e.url) = md5(deliveries.url) limit 1
      ) is null
    order by next_at
    -- With at least as many hosts as deliveries wanted, each host gets one.
    limit case when (select count(*) from free_host) < $1::integer then least(free_host.free, $1::integer) else 1 end
  ) as due
  order by turn, n limit $1::integer
),
picked as materialized (
  -- \`coalesce\` keeps the planner from using the index of due deliveries to find a single one.
  select ready.id, turn, n
  from ready cross join lateral (
    select from deliveries
    where deliveries.id = ready.id and coalesce(deliveries.next_at <= now(), false)
    limit 1 for update skip locked
  ) as locked
),
claimed as (
  update deliveries set lease_token = gen_random_uuid(), next_at = now() + $3::integer * interval '1 millisecond'
  where id = any(array(select id from picked))
  returning id, lease_token as token, account_id as "accountId", url, host, body, attempts
)
select claimed.*, webhook_secret as secret,
  case when previous_webhook_secret_until > now() then previous_webhook_secret end as "previousSecret"
from picked join claimed using (id)
cross join lateral (
  select webhook_secret, previous_webhook_secret, previous_webhook_secret_until
  from accounts where accounts.id = claimed."accountId" limit 1
) as account
order by turn, n
`

/**
 * Records a batch of attempts. $1 is their JSON, $2 the milliseconds for which an endpoint may fail before it is
 * paused. Only the newest claim of a delivery counts; returns the attempts that did. Attempts have just ended, and
 * pauses begin now, by the clock of the database. Locks are taken in the order of deliveries, then of endpoints.
 */
const recordAttemptsStatement = `
-- name: record-attempts
with attempt as materialized (
  select a.*, now() - duration_ms * interval '1 millisecond' as at, now() + pause_ms * interval '1 millisecond' as next_at
  from json_to_recordset($1::json) as a (
    i integer, id uuid, token uuid, status integer, duration_ms integer, answer text, state text, pause_ms float8
  )
  order by id
),
held as materialized (
  select attempt.*, delivery.account_id, delivery.url, delivery.host
  from attempt cross join lateral (
    select account_id, url, host from deliveries
    -- \`is not distinct from\` keeps the planner from using the index of leased deliveries, as it would with \`=\`.
    where deliveries.id = attempt.id and deliveries.lease_token is not distinct from attempt.token
    limit 1 for update
  ) as delivery
),
changed as (
  update deliveries set state = held.state, attempts = attempts + 1, next_at = held.next_at, lease_token = null,
    last_status = held.status, last_attempt_at = held.at
  from held where deliveries.id = held.id and deliveries.id = any(array(select id from held))
),
logged as (
  insert into delivery_attempts (delivery_id, at, status, duration_ms, answer)
  select id, at, status, duration_ms, answer from held order by i
),
endpoint as (
  insert into webhook_endpoints as stored
    (account_id, url, host, failing_since, last_success_at, last_attempt_at, dead_since)
  select account_id, url, min(host), case when not bool_or(state = 'delivered') then min(at) end,
    max(at) filter (where state = 'delivered'), max(at),
    case when not bool_or(state = 'delivered') then min(at) filter (where state = 'dead') end
  from held group by account_id, url order by account_id, url
  -- A paused endpoint stays paused, even if a delivery that was in flight succeeds.
  on conflict (account_id, md5(url)) do update set
    failing_since = case when excluded.last_success_at is null
      -- The least: after the clock of the database was set back, the stored time may lie in the future.
      then least(stored.failing_since, excluded.failing_since) end,
    last_success_at = coalesce(excluded.last_success_at, stored.last_success_at),
    last_attempt_at = excluded.last_attempt_at,
    dead_since = case when excluded.last_success_at is null
      then least(stored.dead_since, excluded.dead_since) end,
    paused_at = coalesce(stored.paused_at, case
      when excluded.last_success_at is null
        and excluded.last_attempt_at - stored.failing_since > $2::double precision * interval '1 millisecond'
      then now() end)
)
select i from held
`

const findNextDueStatement = `
-- name: find-next-due-delivery
${eachHost} select (extract(epoch from min(next_at) - clock_timestamp()) * 1000)::float8 as ms from host`

const countStatement = `
-- name: count-deliveries
${eachHost}
select (select count(*) from deliveries where next_at is not null)::integer as waiting,
  coalesce(extract(epoch from now() - (select min(next_at) from host where next_at <= now())), 0)::float8 as "lateSeconds"
`

/** Counts the webhooks that test keys of an account cause on a day. Only the latest day is kept. */
export function makeTestWebhookStore({ pool }: { pool: Pool }, { maxPerDay }: { maxPerDay: number }) {
  return {
    maxPerDay,
    /** Counts one webhook. Returns the seconds until the next day, and counts nothing, when the day is used up. */
    async take(accountId: string): Promise<number | undefined> {
      const taken = await changeRows(
        pool,
        `insert into test_webhooks as t (account_id, day, count) values ($1, (now() at time zone 'UTC')::date, 1)
         on conflict (account_id) do update
         set day = excluded.day, count = case when t.day = excluded.day then t.count + 1 else 1 end
         where t.day <> excluded.day or t.count < $2`,
        [accountId, maxPerDay],
      )
      if (taken === 1) return undefined
      return (await findRow<{ seconds: number }>(pool, secondsLeft))?.seconds
    },
  }
}

const secondsLeft = `
select ceil(extract(epoch from date_trunc('day', now(), 'UTC') + interval '1 day' - now()))::integer as seconds`
