/** Taken by whoever lends deliveries or lets an endpoint go on: they must not do so at the same time. */
export const deliveryLock = 52_115_003

/**
 * What waits for a paused endpoint is put aside, because claims would have to step over it. It looks at the first
 * thousand of a receiver only; the others are put aside when they come to the front.
 */
export const parkStatement = `
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

/** All receivers that something waits for, each with the time of its first. Found by jumping through the index. */
export const eachHost = `
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
 * Receivers take turns, beginning behind the one that was served last ($4). One whose deliveries are lent already, to
 * whomever, gets only as many as it has places left: this is exact because claims wait for each other.
 *
 * $1 how many, $2 places of a receiver, $3 lease in milliseconds.
 */
export const claimDeliveriesStatement = `${eachHost},
place as materialized (
  select host.host, $2::integer - lent.n as free, row_number() over (order by host.host <= $4::text, host.host) as n
  from host cross join lateral (
    select count(*)::integer as n from deliveries
    where deliveries.host = host.host and lease_token is not null and deliveries.next_at > now()
  ) as lent
  where host.next_at <= now() and lent.n < $2::integer
),
ready as materialized (
  select due.id, n, row_number() over (partition by n order by due.next_at, due.id) as turn
  from place cross join lateral (
    select id, next_at from deliveries
    where deliveries.host = place.host and next_at <= now()
      -- Asked for each, not as a join: a join would bring all of a receiver together before it takes the first.
      and (
        select e.paused_at from webhook_endpoints as e
        where e.account_id = deliveries.account_id and md5(e.url) = md5(deliveries.url) limit 1
      ) is null
    order by next_at
    -- Enough receivers for all, and none gets a second one.
    limit case when (select count(*) from place) < $1::integer then least(place.free, $1::integer) else 1 end
  ) as due
  order by turn, n limit $1::integer
),
picked as materialized (
  -- \`coalesce\` keeps the planner from looking for it in the index of those that are due.
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
  returning id, lease_token, account_id, url, host, body, attempts
)
select claimed.*, webhook_secret,
  case when previous_webhook_secret_until > now() then previous_webhook_secret end as previous_webhook_secret
from picked join claimed using (id)
cross join lateral (
  select webhook_secret, previous_webhook_secret, previous_webhook_secret_until
  from accounts where accounts.id = claimed.account_id limit 1
) as account
order by turn, n
`
