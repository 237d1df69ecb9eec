/**
 * The first part of the statements of the admission gate: it resolves keys and counts requests. See
 * admission-statements.ts.
 *
 * $1 digests of the keys in hex, $2 requests that each key wants.
 */
const findKeys = (wanted: string) => `
with valid_key as materialized (
  -- Each key is looked up through the indexes: \`limit 1\` keeps the planner from reading whole tables while they are
  -- small and from keeping that plan when they have grown.
  select k::integer, ${wanted} as wanted, key.id as key_id, key.is_test, key.restrictions,
    account.id as account_id, account.flags_sexy,
    coalesce(account.rate_requests, plans.rate_requests) as rate_requests,
    coalesce(account.rate_period_seconds, plans.rate_period_seconds) as rate_period_seconds,
    plans.account_rate_requests as account_requests, plans.account_rate_period_seconds as account_seconds
  from unnest($1::text[], $2::integer[]) with ordinality as batch_key (digest, wanted, k)
  cross join lateral (
    select id, account_id, is_test, restrictions from api_keys
    where api_keys.digest = decode(batch_key.digest, 'hex') and revoked_at is null
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

/**
 * Whether a window is over: its time has passed, or it has not begun, because the clock of the database was set back. The
 * batch may have waited for a batch that began later, so the beginning is compared with the time of this moment.
 */
const isOver = (period: string) => `(w.started_at + ${period} <= now() or w.started_at > clock_timestamp())`

const updateWindows = `
  -- The row keeps used_before only to return it: \`returning\` cannot show the values before an update.
  update rate_windows as w set
    started_at = case when ${isOver('rate_period')} then now() else w.started_at end,
    used_before = case when ${isOver('rate_period')} then 0 else w.used end,
    used = case when ${isOver('rate_period')} then least(wanted, rate_requests)
                else greatest(w.used, least(w.used + wanted, rate_requests)) end,
    last_used_at = now()
  from valid_key cross join lateral (select make_interval(secs => rate_period_seconds) as rate_period) as p
  where w.key_id = valid_key.key_id`

/** The columns that both ways of counting return from the windows of keys. */
const countedFields = `k, w.key_id, account_id, is_test, restrictions, flags_sexy, rate_requests, rate_period_seconds,
    used_before, used - used_before as granted, w.started_at + rate_period as resets_at`

/**
 * Counts the requests of each key in its rate window. A key whose plan has a rate for accounts is not counted and gets
 * nothing: `is_shared` asks the gate to count it by `countInAccounts`, which costs every batch more.
 */
export const countRequests = `${findKeys('case when plans.account_rate_requests is null then wanted else 0 end')}
counted as materialized (${updateWindows}
  returning ${countedFields}, account_requests is not null as is_shared
)`

/**
 * Counts the requests of each key in its rate window, and those that the key may send in the window of its account, if
 * the plan has a rate for accounts. Where the account has less left than the key, the key shows what the account has.
 */
export const countInAccounts = `${findKeys('wanted')}
key_counted as materialized (${updateWindows}
  returning ${countedFields}, account_requests, account_seconds
),
account_counted as materialized (
  update account_windows as w set
    started_at = case when ${isOver('period')} then now() else w.started_at end,
    used_before = case when ${isOver('period')} then 0 else w.used end,
    used = case when ${isOver('period')} then least(wanted, requests)
                else greatest(w.used, least(w.used + wanted, requests)) end
  from (
    select account_id, account_requests as requests, make_interval(secs => account_seconds) as period,
      sum(granted)::integer as wanted
    from key_counted where account_requests is not null
    group by account_id, account_requests, account_seconds order by account_id
  ) as a
  where w.account_id = a.account_id
  returning w.account_id, requests - used_before as available, w.started_at + period as account_resets_at
),
counted as materialized (
  select k, key_id, account_id, is_test, restrictions, flags_sexy, rate_requests, rate_period_seconds,
    false as is_shared,
    case when is_tighter then rate_requests - account_left else used_before end as used_before,
    case when is_tighter then least(granted, account_left) else granted end as granted,
    case when is_tighter then account_resets_at else resets_at end as resets_at
  from key_counted
  left join account_counted using (account_id)
  -- Keys of the same account in this batch take from the window of the account in the order of the batch.
  cross join lateral (
    select greatest(0, available - (
      select coalesce(sum(earlier.granted), 0) from key_counted as earlier
      where earlier.account_id = key_counted.account_id and earlier.k < key_counted.k
    ))::integer as account_left
  ) as account_share
  cross join lateral (
    select coalesce(account_resets_at is not null and account_left < rate_requests - used_before, false) as is_tighter
  ) as comparison
)`

/**
 * For scans whose requests were counted on arrival. The windows are read, not locked: the commit of a charge waits for
 * the disk, and the next requests of the key would wait with it.
 */
export const readWindows = `${findKeys('wanted')}
counted as materialized (
  select k, w.key_id, account_id, is_test, restrictions, flags_sexy, rate_requests, rate_period_seconds,
    w.used as used_before, false as is_shared, 0 as granted,
    w.started_at + make_interval(secs => rate_period_seconds) as resets_at
  from valid_key join rate_windows as w using (key_id)
)`

/** The fields that every statement returns for each key. */
export const keyFields = `counted.k, counted.account_id as "accountId", counted.is_test as "isTest",
  counted.restrictions, counted.flags_sexy as "flagsSexy", counted.is_shared as "isShared",
  counted.rate_requests as requests, counted.rate_period_seconds as "periodSeconds",
  counted.used_before as "usedBefore", counted.granted, counted.resets_at as "resetsAt", now() as now`
