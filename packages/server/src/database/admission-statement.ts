/**
 * A whole batch of asks in one statement: resolve the keys, take from the rate windows, charge credits, record scans
 * and ledger rows. Either all of it is committed or nothing.
 *
 * Exactness comes from the two `for update` steps: they read the newest row after waiting for whoever holds it, and
 * everything after them counts from what they read. `balances` are locked for asks that the locked windows let pass,
 * so every process takes the locks in the same order: windows by key, then balances by account.
 *
 * $1 key digests, $2 whether each takes a request, $3 the scans among them as JSON, each with its position `n`.
 */
export const admissionStatement = `
with ask as materialized (
  select n::integer, digest, takes
  from unnest($1::bytea[], $2::boolean[]) with ordinality as a (digest, takes, n)
),
asked_scan as materialized (
  select s.*, exists (select from scans where scans.id = s.id) as recorded
  from jsonb_to_recordset($3::jsonb) as s (
    n integer, id uuid, kind text, mode text, region text,
    content_length bigint, content_type text, content_name text, metadata jsonb
  )
),
known as materialized (
  select ask.n, ask.takes, api_keys.id as key_id, accounts.id as account_id,
    coalesce(accounts.rate_requests, plans.rate_requests) as rate_requests,
    coalesce(accounts.rate_period_seconds, plans.rate_period_seconds) as rate_period_seconds
  from ask
  join api_keys on api_keys.digest = ask.digest
  join accounts on accounts.id = api_keys.account_id
  join plans on plans.name = accounts.plan
  where api_keys.revoked_at is null and accounts.suspended_at is null
    and (api_keys.expires_at is null or api_keys.expires_at > now())
    and (accounts.expires_at is null or accounts.expires_at > now())
),
rate_window as materialized (
  select key_id, started_at, used
  from rate_windows
  where key_id in (select key_id from known)
  order by key_id
  for update
),
counted as materialized (
  select known.*,
    case when over then now() else started_at end as opened_at,
    case when over then 0 else used end as used_before,
    count(*) filter (where takes) over (partition by known.key_id order by n) as nth
  from known
  join rate_window using (key_id)
  cross join lateral (select started_at + make_interval(secs => rate_period_seconds) <= now() as over) as o
),
passed as materialized (
  select counted.*, not takes or used_before + nth <= rate_requests as allowed from counted
),
take as (
  update rate_windows set started_at = t.opened_at, used = t.used_after, last_used_at = now()
  from (
    select key_id, opened_at, max(used_before + nth) as used_after
    from passed where takes and allowed group by key_id, opened_at
  ) as t
  where rate_windows.key_id = t.key_id
),
spender as materialized (
  select passed.n, passed.account_id, asked_scan.id as scan_id
  from passed join asked_scan using (n)
  where passed.allowed and not asked_scan.recorded
),
purse as materialized (
  select account_id, credit_remaining, period_end <= now() as period_over
  from balances
  where account_id in (select account_id from spender)
  order by account_id
  for update
),
spent as materialized (
  select n, account_id, scan_id, credit_remaining - row_number() over (partition by account_id order by n) as balance
  from spender join purse using (account_id)
  where not period_over
),
debit as (
  update balances set credit_remaining = s.balance
  from (select account_id, min(balance) as balance from spent where balance >= 0 group by account_id) as s
  where balances.account_id = s.account_id
),
recorded as (
  insert into scans (id, account_id, kind, mode, region, content_length, content_type, content_name, metadata)
  select a.id, spent.account_id, a.kind, a.mode, a.region, a.content_length, a.content_type, a.content_name, a.metadata
  from spent join asked_scan a using (n) where spent.balance >= 0
),
written as (
  insert into credit_ledger (account_id, kind, amount, balance, scan_id)
  select account_id, 'debit', -1, balance, scan_id from spent where balance >= 0 order by n
)
select passed.n, passed.account_id, passed.rate_requests, passed.rate_period_seconds,
  balances.credit_limit,
  greatest(0, case when spender.n is null then coalesce(purse.credit_remaining, balances.credit_remaining)
                   else spent.balance end)::integer as credit_remaining,
  greatest(0, passed.rate_requests - passed.used_before - passed.nth)::integer as requests_remaining,
  passed.opened_at + make_interval(secs => passed.rate_period_seconds) as resets_at,
  case
    when not passed.allowed then 'rate-limited'
    when coalesce(purse.period_over, balances.period_end <= now()) then 'period-over'
    when spent.balance < 0 then 'out-of-credit'
    else 'admitted'
  end as outcome,
  now() as at
from passed
join balances using (account_id)
left join purse using (account_id)
left join spender using (n)
left join spent using (n)
order by passed.n
`
