with recursive ahead (account_id, n) as (
  select 
    (select next.account_id from jobs as next where next.held_until is null and next.lane = any($4::text[]) and next.account_id > $3::uuid
     order by next.account_id limit 1), 1
  union all
  select 
    (select next.account_id from jobs as next where next.held_until is null and next.lane = any($4::text[]) and next.account_id > ahead.account_id
     order by next.account_id limit 1), n + 1
  from ahead where ahead.account_id is not null and n < $1::integer
),
behind (account_id, n) as (
  select 
    (select next.account_id from jobs as next where next.held_until is null and next.lane = any($4::text[]) and next.account_id <= $3::uuid
     order by next.account_id limit 1), (select count(account_id) from ahead)::integer + 1
  where (select count(account_id) from ahead) < $1::integer
  union all
  select 
    (select next.account_id from jobs as next where next.held_until is null and next.lane = any($4::text[]) and next.account_id > behind.account_id and next.account_id <= $3::uuid
     order by next.account_id limit 1), n + 1
  from behind where behind.account_id is not null and n < $1::integer
),
seat as materialized (
  select account_id, n from ahead where account_id is not null
  union all
  select account_id, n from behind where account_id is not null
),
depth as materialized (
  -- As many of each account as fill the claim twice over if all of them have so many.
  select ceil(2.0 * $1::integer / greatest(count(*), 1))::integer as depth from seat
),
seen as materialized (
  select job.scan_id, n, row_number() over (partition by n order by job.position) as turn
  from seat cross join lateral (
    select scan_id, position from jobs
    where jobs.account_id = seat.account_id and held_until is null and lane = any($4::text[])
    order by position limit (select depth from depth)
  ) as job
),
ready as materialized (
  select scan_id, n, turn from seen order by turn, n limit 2 * $1::integer
),
picked as materialized (
  -- One by one in that order, as far as they are needed. `num_nulls` is there so that the index of those that wait is not
  -- taken for one that finds a scan.
  select ready.scan_id, n, turn
  from ready cross join lateral (
    select from jobs where jobs.scan_id = ready.scan_id and num_nulls(held_until) = 1
    limit 1 for update skip locked
  ) as locked
  limit $1::integer
),
claimed as (
  update jobs set attempts = attempts + 1, lease_token = gen_random_uuid(),
    held_until = now() + $2::integer * interval '1 millisecond'
  where scan_id = any(array(select scan_id from picked))
  returning scan_id, account_id, attempts, lease_token, sealed, storage_key, url, callback_url
)
select more, claimed.*, flags_sexy, scan.*
from (
  select (select count(*) from seen) > (select count(*) from picked)
    or exists (select from seen cross join depth where turn >= depth) as more
) as rest
left join (
  picked join claimed using (scan_id) 
  cross join lateral (select id, kind, mode, region, status,
    content_length, content_type, content_name,
    signals, metadata, created_at, completed_at from scans where scans.id = claimed.scan_id limit 1) as scan
  left join lateral (select flags_sexy from accounts where accounts.id = claimed.account_id limit 1) as account on true
) on true
order by turn, n
