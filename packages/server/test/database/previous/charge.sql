with known as materialized (
  -- Key by key through the indexes: the limits keep the planner from reading whole tables while they are small and from
  -- holding on to that plan when they have grown.
  select k::integer, wanted, key.id as key_id, account.id as account_id, account.flags_sexy,
    coalesce(account.rate_requests, plans.rate_requests) as rate_requests,
    coalesce(account.rate_period_seconds, plans.rate_period_seconds) as rate_period_seconds
  from unnest($1::text[], $2::integer[]) with ordinality as ask (digest, wanted, k)
  cross join lateral (
    select id, account_id from api_keys
    where api_keys.digest = decode(ask.digest, 'hex') and revoked_at is null
      and (expires_at is null or expires_at > now())
    limit 1
  ) as key
  cross join lateral (
    select id, plan, rate_requests, rate_period_seconds, flags_sexy from accounts
    where accounts.id = key.account_id and suspended_at is null and (expires_at is null or expires_at > now())
    limit 1
  ) as account
  join plans on plans.name = account.plan
  order by key.id
),
counted as materialized (
  -- used_before is kept in the row only to be returned: what the row held before an update cannot be asked for.
  update rate_windows as w set
    started_at = case when w.started_at + rate_period <= now() then now() else w.started_at end,
    used_before = case when w.started_at + rate_period <= now() then 0 else w.used end,
    used = case when w.started_at + rate_period <= now() then least(wanted, rate_requests)
                else greatest(w.used, least(w.used + wanted, rate_requests)) end,
    last_used_at = now()
  from known cross join lateral (select make_interval(secs => rate_period_seconds) as rate_period) as p
  where w.key_id = known.key_id
  returning k, account_id, flags_sexy, rate_requests, rate_period_seconds, used_before, used - used_before as granted,
    w.started_at + rate_period as resets_at
), 
asked_scan as materialized (
  select s.*
  from json_to_recordset($3::json) as s (
    i integer, k integer, nth integer, id uuid, kind text, mode text, region text, status text,
    content_length bigint, content_type text, content_name text,
    signals text[], metadata jsonb, created_at timestamptz, completed_at timestamptz
  )
),
spender as materialized (
  select asked_scan.i, asked_scan.k, asked_scan.id as scan_id, counted.account_id
  from asked_scan
  join counted using (k)
  left join lateral (select true as yes from scans where scans.id = asked_scan.id limit 1) as recorded on true
  where coalesce(nth <= granted, true) and recorded.yes is null
),
purse as materialized (
  select account_id, credit_limit, credit_remaining, period_end <= now() as period_over
  from balances
  where account_id in (select account_id from spender)
  order by account_id
  for update
),
spent as materialized (
  select i, k, account_id, scan_id, credit_limit,
    (credit_remaining - row_number() over (partition by account_id order by i))::integer as balance
  from spender join purse using (account_id)
  where not period_over
),
debit as (
  -- The limit is written too, though it does not change: the row this update first sees may be older than the locked one,
  -- and its constraint is checked before that is noticed. A grant in between would make the old limit too small.
  update balances set credit_remaining = s.balance, credit_limit = s.credit_limit
  from (
    select account_id, credit_limit, min(balance) as balance from spent where balance >= 0 group by account_id, credit_limit
  ) as s
  where balances.account_id = s.account_id
),
recorded as (
  insert into scans (account_id, id, kind, mode, region, status,
    content_length, content_type, content_name,
    signals, metadata, created_at, completed_at)
  select spent.account_id, id, kind, mode, region, status,
    content_length, content_type, content_name,
    signals, metadata, created_at, completed_at
  from spent join asked_scan using (i) where spent.balance >= 0
),
written as (
  insert into credit_ledger (account_id, kind, amount, balance, scan_id)
  select account_id, 'debit', -1, balance, scan_id from spent where balance >= 0 order by i
)
select 
  counted.k, counted.account_id, counted.flags_sexy, counted.rate_requests, counted.rate_period_seconds,
  counted.used_before, counted.granted, counted.resets_at, now() as at,
  coalesce(purse.credit_limit, balances.credit_limit) as credit_limit,
  coalesce(purse.credit_remaining, balances.credit_remaining) as credit_remaining,
  coalesce(purse.period_over, balances.period_end <= now()) as period_over,
  (select array_agg(spent.i) from spent where spent.k = counted.k) as charged,
  (select array_agg(spent.balance) from spent where spent.k = counted.k) as balances
from counted
join balances using (account_id)
left join purse using (account_id)
