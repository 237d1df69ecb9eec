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
    i integer, k integer, nth integer, operation text, key text, fingerprint text, is_job boolean, lane text, sealed_from integer, sealed_bytes integer, storage_key text, url text,
    callback_url text, callback_host text, id uuid, kind text, mode text, region text, status text,
    content_length bigint, content_type text, content_name text,
    signals text[], metadata jsonb, created_at timestamptz, completed_at timestamptz
  )
),
asking as materialized (
  select asked_scan.i, asked_scan.k, asked_scan.id as scan_id, counted.account_id, operation, key, asked_scan.fingerprint,
    earlier.scan_id as earlier_id, earlier.fingerprint as earlier_fingerprint
  from asked_scan
  join counted using (k)
  left join lateral (select true as yes from scans where scans.id = asked_scan.id limit 1) as recorded on true
  left join lateral (
    select scan_id, fingerprint from idempotency_keys as known
    where known.account_id = counted.account_id and known.operation = asked_scan.operation and known.key = asked_scan.key
    limit 1
  ) as earlier on true
  where coalesce(nth <= granted, true) and recorded.yes is null
),
spender as materialized (
  select i, k, scan_id, account_id, operation, key, fingerprint,
    key is null or row_number() over (partition by account_id, operation, key order by i) = 1 as is_first
  from asking where earlier_id is null
),
purse as materialized (
  select account_id, credit_limit, credit_remaining, period_end <= now() as period_over
  from balances
  where account_id in (select account_id from spender)
  order by account_id
  for update
),
wish as materialized (
  select spender.*, credit_limit, credit_remaining,
    credit_remaining - count(*) filter (where is_first) over (partition by account_id order by i) >= 0 as affordable
  from spender join purse using (account_id)
  where not period_over
),
kept as (
  -- The update changes nothing. It is there because only then the row of somebody else is returned.
  insert into idempotency_keys as kept (account_id, operation, key, fingerprint, scan_id)
  select account_id, operation, key, decode(fingerprint, 'hex'), scan_id
  from wish where key is not null and is_first and affordable
  order by account_id, operation, key
  on conflict (account_id, operation, key) do update set scan_id = kept.scan_id
  returning account_id, operation, key, scan_id, fingerprint
),
judged as materialized (
  select wish.i, wish.k, wish.account_id, wish.scan_id, credit_limit, credit_remaining,
    kept.scan_id as kept_id, kept.fingerprint as kept_fingerprint,
    coalesce(case when wish.key is null then affordable else kept.scan_id = wish.scan_id end, false) as pays
  from wish left join kept using (account_id, operation, key)
),
spent as materialized (
  select i, k, account_id, scan_id, credit_limit,
    case when pays then credit_remaining - row_number() over (partition by account_id, pays order by i) else -1 end::integer
      as balance
  from judged where pays or kept_id is null
),
repeated as materialized (
  select i, k, earlier_id as scan_id, encode(earlier_fingerprint, 'hex') as fingerprint
  from asking where earlier_id is not null
  union all
  select i, k, kept_id, encode(kept_fingerprint, 'hex') from judged where not pays and kept_id is not null
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
),
queued as (
  insert into jobs (scan_id, account_id, lane, sealed, storage_key, url, callback_url, callback_host)
  select spent.scan_id, spent.account_id, lane, substring($4::bytea from sealed_from for sealed_bytes), storage_key, url,
    callback_url, callback_host
  from spent join asked_scan using (i) where spent.balance >= 0 and is_job order by i
)
select 
  counted.k, counted.account_id, counted.flags_sexy, counted.rate_requests, counted.rate_period_seconds,
  counted.used_before, counted.granted, counted.resets_at, now() as at,
  coalesce(purse.credit_limit, balances.credit_limit) as credit_limit,
  coalesce(purse.credit_remaining, balances.credit_remaining) as credit_remaining,
  coalesce(purse.period_over, balances.period_end <= now()) as period_over,
  (select array_agg(spent.i) from spent where spent.k = counted.k) as charged,
  (select array_agg(spent.balance) from spent where spent.k = counted.k) as balances,
  (select json_agg(repeated) from repeated where repeated.k = counted.k) as repeated,
  exists (select from judged where judged.account_id = counted.account_id and not pays and kept_id is not null) as raced

from counted
join balances using (account_id)
left join purse using (account_id)
