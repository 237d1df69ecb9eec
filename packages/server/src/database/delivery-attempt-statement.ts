/**
 * What came of a batch of attempts. $1 is their JSON, $2 how long an endpoint may fail, in milliseconds. Only the newest
 * claim of a delivery counts; returns those that did.
 *
 * Locks are taken in the order of deliveries, then of endpoints.
 */
export const recordAttemptsStatement = `
with asked as materialized (
  select a.* from json_to_recordset($1::json) as a (
    i integer, id uuid, token uuid, at timestamptz, status integer, duration_ms integer, answer text, state text,
    next_at timestamptz
  )
  order by id
),
ours as materialized (
  select asked.*, delivery.account_id, delivery.url, delivery.host
  from asked cross join lateral (
    select account_id, url, host from deliveries
    -- Not \`=\`, which the planner would look for in the index of those that are lent.
    where deliveries.id = asked.id and deliveries.lease_token is not distinct from asked.token
    limit 1 for update
  ) as delivery
),
changed as (
  update deliveries set state = ours.state, attempts = attempts + 1, next_at = ours.next_at, lease_token = null,
    last_status = ours.status, last_attempt_at = ours.at
  from ours where deliveries.id = ours.id and deliveries.id = any(array(select id from ours))
),
logged as (
  insert into delivery_attempts (delivery_id, at, status, duration_ms, answer)
  select id, at, status, duration_ms, answer from ours order by i
),
known as (
  insert into webhook_endpoints as known (account_id, url, host, failing_since, last_success_at, last_attempt_at)
  select account_id, url, min(host), case when not bool_or(state = 'delivered') then min(at) end,
    max(at) filter (where state = 'delivered'), max(at)
  from ours group by account_id, url order by account_id, url
  -- One that is paused stays so, whatever becomes of deliveries that were under way.
  on conflict (account_id, md5(url)) do update set
    failing_since = case when excluded.last_success_at is null
      then coalesce(known.failing_since, excluded.failing_since) end,
    last_success_at = greatest(known.last_success_at, excluded.last_success_at),
    last_attempt_at = greatest(known.last_attempt_at, excluded.last_attempt_at),
    paused_at = coalesce(known.paused_at, case
      when excluded.last_success_at is null
        and excluded.last_attempt_at - known.failing_since > $2::double precision * interval '1 millisecond'
      then now() end)
)
select i from ours
`
