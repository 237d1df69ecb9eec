import { scanColumns, scanRecord } from './scan-columns.ts'

/**
 * A whole batch of asks in one statement: resolve the keys, take from the rate windows, charge credits, record scans
 * and ledger rows. Either all of it is committed or nothing.
 *
 * It works on keys, not on asks: a batch of 64 pings with one key is one row here. Each key says how many requests it
 * wants and is told how many it may have; the caller deals them out in order.
 *
 * Exactness comes from the row locks: an update, and a `for update`, wait for whoever holds the row and then work on
 * its newest version. Windows are taken in the order of keys, then balances in that of accounts, so that two processes
 * do not lock each other out; should it happen all the same, one batch is told so and asks again one by one.
 *
 * $1 digests of the keys in hex, $2 requests wanted by each.
 */
const findKeys = `
with known as materialized (
  -- Key by key through the indexes: the limits keep the planner from reading whole tables while they are small and from
  -- holding on to that plan when they have grown.
  select k::integer, wanted, key.id as key_id, key.is_test, account.id as account_id, account.flags_sexy,
    coalesce(account.rate_requests, plans.rate_requests) as rate_requests,
    coalesce(account.rate_period_seconds, plans.rate_period_seconds) as rate_period_seconds
  from unnest($1::text[], $2::integer[]) with ordinality as ask (digest, wanted, k)
  cross join lateral (
    select id, account_id, is_test from api_keys
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
),`

export const takeRequests = `${findKeys}
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
  returning k, w.key_id, account_id, is_test, flags_sexy, rate_requests, rate_period_seconds, used_before,
    used - used_before as granted, w.started_at + rate_period as resets_at
)`

/**
 * For scans whose requests were counted when they came. The windows are read, not locked: the commit of a charge waits for
 * the disk, and the next requests of the key would have to wait with it.
 */
export const readWindows = `${findKeys}
counted as materialized (
  select k, w.key_id, account_id, is_test, flags_sexy, rate_requests, rate_period_seconds, w.used as used_before, 0 as granted,
    w.started_at + make_interval(secs => rate_period_seconds) as resets_at
  from known join rate_windows as w using (key_id)
)`

export const tellOfKeys = `
  counted.k, counted.account_id, counted.is_test, counted.flags_sexy, counted.rate_requests, counted.rate_period_seconds,
  counted.used_before, counted.granted, counted.resets_at, now() as at`

/**
 * For a batch without scans. A rate window may lose its last moment in a power cut, a charge may not: so this commit
 * does not wait for the disk, and only this one.
 */
export const requestStatement = `${takeRequests}
select ${tellOfKeys},
  balances.credit_limit, balances.credit_remaining, balances.period_end <= now() as period_over,
  set_config('synchronous_commit', 'off', true)
from counted join balances using (account_id)
`

/**
 * The part of a batch with scans. $3 is their JSON: each with `k`, the position of its key in $1; `nth`, its position among the
 * requests of that key (null when it takes none); `flags_sexy`, what the account must have it set to (null when that does not
 * matter); and `i`, any number to know it by.
 */
const findSpenders = `
asked_scan as materialized (
  select s.*
  from json_to_recordset($3::json) as s (
    i integer, k integer, nth integer, flags_sexy boolean, ${scanRecord}
  )
),
spender as materialized (
  select asked_scan.i, asked_scan.k, asked_scan.id as scan_id, counted.account_id, counted.is_test
  from asked_scan
  join counted using (k)
  -- A charge that was asked for before is in the ledger. Not looked for in scans: they are many tables, of which all would be
  -- opened.
  left join lateral (
    select true as yes from credit_ledger as c where c.scan_id = asked_scan.id and c.kind = 'debit' limit 1
  ) as recorded on true
  where coalesce(nth <= granted, true) and recorded.yes is null
    and coalesce(asked_scan.flags_sexy = counted.flags_sexy, true)
),`

export const lockBalances = `
purse as materialized (
  select account_id, credit_limit, credit_remaining, period_end <= now() as period_over
  from balances
  where account_id in (select account_id from spender)
  order by account_id
  for update
),`

/** After each scan that pays, in their order. A test key pays nothing, and leaves the balance as it is. */
export const toBalance = (partition: string) =>
  `(credit_remaining - case when is_test then 0 else row_number() over (partition by ${partition}, is_test order by i) end)::integer`

const spend = `
spent as materialized (
  select i, k, account_id, is_test, scan_id, credit_limit,
    ${toBalance('account_id')} as balance
  from spender join purse using (account_id)
  where not period_over
),`

/** Of what was spent, all that the balance allows. */
export const record = `
debit as (
  -- The limit is written too, though it does not change: the row this update first sees may be older than the locked one,
  -- and its constraint is checked before that is noticed. A grant in between would make the old limit too small.
  update balances set credit_remaining = s.balance, credit_limit = s.credit_limit
  from (
    select account_id, credit_limit, min(balance) as balance from spent where balance >= 0 and not is_test
    group by account_id, credit_limit
  ) as s
  where balances.account_id = s.account_id
),
recorded as (
  -- A charge that was recorded before is not spent again; a test is charged nothing, and is known by its scan alone.
  insert into scans (account_id, key_id, ${scanColumns})
  select spent.account_id, counted.key_id, ${scanColumns}
  from spent join asked_scan using (i) join counted on counted.k = spent.k where spent.balance >= 0
  on conflict (id) do nothing
  returning id
),
written as (
  insert into credit_ledger (account_id, kind, amount, balance, scan_id)
  select account_id, 'debit', -1, balance, scan_id from spent where balance >= 0 and not is_test order by i
)`

export const tellOfCharges = `
  coalesce(purse.credit_limit, balances.credit_limit) as credit_limit,
  coalesce(purse.credit_remaining, balances.credit_remaining) as credit_remaining,
  coalesce(purse.period_over, balances.period_end <= now()) as period_over,
  (select array_agg(spent.i) from spent where spent.k = counted.k) as charged,
  (select array_agg(spent.balance) from spent where spent.k = counted.k) as balances`

export const fromLockedBalances = `
from counted
join balances using (account_id)
left join purse using (account_id)
`

const charge = `${findSpenders}${lockBalances}${spend}${record}
select ${tellOfKeys},${tellOfCharges}${fromLockedBalances}`

/** Requests and scans together. */
export const chargeStatement = `${takeRequests}, ${charge}`
/** Scans alone. */
export const laterChargeStatement = `${readWindows}, ${charge}`
