import { countInAccounts, countRequests, keyFields, readWindows } from './admission-counting.ts'
import { isPeriodOver } from './balances.ts'
import { jobRecord, scanColumns, scanRecord } from './scan-store.ts'

// The statements of the admission gate. Each admits a whole batch: it resolves the keys, counts requests in the rate
// windows, charges credits, and records scans, ledger rows and jobs. All of it is committed, or nothing.
//
// The statements work on keys, not on calls: a batch of 64 pings with one key is one row. Each key says how many
// requests it wants and learns how many are granted; the gate assigns them to the calls in order.
//
// Row locks make the counts exact: an update, and a `for update`, wait for the transaction that holds the row and then
// work on its newest version. All processes lock rate windows in the order of keys, then windows of accounts and then
// balances in the order of accounts, so that they do not deadlock. If they do, one batch fails and its calls run one by
// one.

/**
 * A batch without scans. Only this commit does not wait for the disk: a power cut may lose the last moment of a rate
 * window, but never a charge.
 */
const selectCounted = `
select ${keyFields},
  balances.credit_limit as "creditLimit", balances.credit_remaining as "creditRemaining",
  ${isPeriodOver} as "isPeriodOver", set_config('synchronous_commit', 'off', true)
from counted join balances using (account_id)
`

/**
 * Finds scans that an earlier call has recorded, and charged unless the key is a test key. The bounds tell PostgreSQL
 * before the statement runs which partitions it need not open. A scan that is being recorded by another transaction is
 * not found; then the insert fails, and the calls of the batch run one by one.
 */
const findEarlier = `left join lateral (
    select true as found from scans where scans.id = requested.id and scans.id between $4::uuid and $5::uuid limit 1
  ) as earlier_scan on true`

/** Records the scans that are paid for. The row of a scan is its own debit. */
const insertScans = `insert into scans (account_id, key_id, ledger_id, balance, ${scanColumns})
  select charged.account_id, counted.key_id, case when charged.is_test then null else nextval('credit_ledger_id_seq') end,
    case when charged.is_test then null else charged.balance end, ${scanColumns}
  from charged join requested using (i) join counted on counted.k = charged.k where charged.balance >= 0 order by i
  returning id`

/**
 * The common case of `charge` and `enqueue`: scans of one key that has enough requests and credits left. $1 digest of
 * the key, $2 requests to count, $3 number of scans, $4 their JSON with `n`, their position, $5 the setting that the
 * account must have and $6 the restrictions that the key must have, null when any will do, $7 the JSON of their jobs,
 * null when they have none, $8 the sealed contents. When `charge` or `enqueue` must decide, it changes nothing: it
 * returns a row of nulls, or, if the balance changed meanwhile, fails with AS001.
 */
export const chargeOneKey = `
-- name: charge-one-key
select *, now() as now from charge_scans($1, $2, $3, $4, $5, $6, $7, $8)
`

/**
 * A batch with scans. $3 is the JSON of the scans. Beside the columns of a scan, each has `k`, the position of its key
 * in the batch; `nth`, its position among the requests of that key, null when its request is not counted here;
 * `flags_sexy`, the setting that the account must have, and `restrictions`, those that the key must have, null when any
 * will do; and `i`, its number in the result. $4 and $5 are the first and the last id.
 */
const charge = `,
requested as materialized (
  select r.* from json_to_recordset($3::json) as r (
    i integer, k integer, nth integer, flags_sexy boolean, restrictions text, ${scanRecord}
  )
),
chargeable as materialized (
  select requested.i, requested.k, requested.id as scan_id, counted.account_id, counted.is_test
  from requested
  join counted using (k)
  ${findEarlier}
  where coalesce(nth <= granted, true) and earlier_scan.found is null
    and coalesce(requested.flags_sexy = counted.flags_sexy, true)
    and coalesce(requested.restrictions = counted.restrictions, true)
),
locked_balance as materialized (
  select account_id, credit_limit, credit_remaining, ${isPeriodOver} as is_period_over
  from balances
  where account_id in (select account_id from chargeable)
  order by account_id
  for update
),
charged as materialized (
  -- The balance after each scan, in order; below zero means not charged. Test keys pay nothing.
  select i, k, account_id, is_test, scan_id, credit_limit,
    (credit_remaining - case when is_test then 0
      else row_number() over (partition by account_id, is_test order by i) end)::integer as balance
  from chargeable join locked_balance using (account_id)
  where not is_period_over
),
debited as (
  -- The limit is written too, though it does not change. The row that this update first sees may be older than the
  -- locked one, and its constraint is checked before PostgreSQL notices; a grant in between would make the old limit
  -- too small.
  update balances set credit_remaining = c.balance, credit_limit = c.credit_limit
  from (
    select account_id, credit_limit, min(balance) as balance from charged where balance >= 0 and not is_test
    group by account_id, credit_limit
  ) as c
  where balances.account_id = c.account_id
),
recorded as (
  ${insertScans}
)
select ${keyFields},
  coalesce(locked_balance.credit_limit, balances.credit_limit) as "creditLimit",
  coalesce(locked_balance.credit_remaining, balances.credit_remaining) as "creditRemaining",
  coalesce(locked_balance.is_period_over, ${isPeriodOver}) as "isPeriodOver",
  (select array_agg(charged.i) from charged where charged.k = counted.k) as charged,
  (select array_agg(charged.balance) from charged where charged.k = counted.k) as balances
from counted
join balances using (account_id)
left join locked_balance using (account_id)
`

/**
 * A batch with background scans or idempotency keys. The scans in $3 have the columns of their job and of their
 * idempotency key as well, and $6 holds the sealed contents.
 *
 * Idempotency keys are inserted after the balances are locked. Both belong to the account, so a concurrent call with
 * the same key waits at the balance, and then finds the key taken, though its statement could not see that when it
 * began. So the insert decides, and returns the scan that holds the key.
 */
const enqueue = `,
requested as materialized (
  select r.* from json_to_recordset($3::json) as r (
    i integer, k integer, nth integer, flags_sexy boolean, restrictions text,
    operation text, key text, fingerprint text, ${jobRecord}, ${scanRecord}
  )
),
compared as materialized (
  -- Scans that are not charged yet, with the earlier scan of the same idempotency key.
  select requested.i, requested.k, requested.id as scan_id, counted.account_id, counted.is_test, operation, key,
    requested.fingerprint, earlier.scan_id as earlier_id, earlier.fingerprint as earlier_fingerprint
  from requested
  join counted using (k)
  ${findEarlier}
  left join lateral (
    select scan_id, fingerprint from idempotency_keys as stored
    where stored.account_id = counted.account_id and stored.operation = requested.operation
      and stored.key = requested.key
    limit 1
  ) as earlier on true
  where coalesce(nth <= granted, true) and earlier_scan.found is null
    and coalesce(requested.flags_sexy = counted.flags_sexy, true)
    and coalesce(requested.restrictions = counted.restrictions, true)
),
chargeable as materialized (
  -- Of the scans in this batch that share an idempotency key, the first may be charged.
  select i, k, scan_id, account_id, is_test, operation, key, fingerprint,
    key is null or row_number() over (partition by account_id, operation, key order by i) = 1 as is_first
  from compared where earlier_id is null
),
locked_balance as materialized (
  select account_id, credit_limit, credit_remaining, ${isPeriodOver} as is_period_over
  from balances
  where account_id in (select account_id from chargeable)
  order by account_id
  for update
),
candidate as materialized (
  select chargeable.*, credit_limit, credit_remaining,
    is_test or credit_remaining
      - count(*) filter (where is_first and not is_test) over (partition by account_id order by i) >= 0 as is_affordable
  from chargeable join locked_balance using (account_id)
  where not is_period_over
),
stored_key as (
  -- The update changes nothing. Without it, \`returning\` would leave out a key that a concurrent call has inserted.
  insert into idempotency_keys as stored (account_id, operation, key, fingerprint, scan_id)
  select account_id, operation, key, decode(fingerprint, 'hex'), scan_id
  from candidate where key is not null and is_first and is_affordable
  order by account_id, operation, key
  on conflict (account_id, operation, key) do update set scan_id = stored.scan_id
  returning account_id, operation, key, scan_id, fingerprint
),
decided as materialized (
  select candidate.i, candidate.k, candidate.account_id, candidate.is_test, candidate.scan_id, credit_limit,
    credit_remaining, stored_key.scan_id as stored_id, stored_key.fingerprint as stored_fingerprint,
    coalesce(case when candidate.key is null then is_affordable
      else stored_key.scan_id = candidate.scan_id end, false) as pays
  from candidate left join stored_key using (account_id, operation, key)
),
charged as materialized (
  -- As in \`charge\`, for the scans that pay. A scan that is neither paid for nor a repeat gets -1: not charged.
  select i, k, account_id, is_test, scan_id, credit_limit,
    case when pays then (credit_remaining - case when is_test then 0
      else row_number() over (partition by account_id, pays, is_test order by i) end)::integer else -1 end as balance
  from decided where pays or stored_id is null
),
repeated as materialized (
  select i, k, earlier_id as "scanId", encode(earlier_fingerprint, 'hex') as fingerprint
  from compared where earlier_id is not null
  union all
  select i, k, stored_id, encode(stored_fingerprint, 'hex') from decided where not pays and stored_id is not null
),
debited as (
  -- The limit is written for the same reason as in \`charge\`.
  update balances set credit_remaining = c.balance, credit_limit = c.credit_limit
  from (
    select account_id, credit_limit, min(balance) as balance from charged where balance >= 0 and not is_test
    group by account_id, credit_limit
  ) as c
  where balances.account_id = c.account_id
),
recorded as (
  ${insertScans}
),
queued as (
  insert into jobs
    (scan_id, account_id, queue, sealed, storage_key, url, test_case, held_until, callback_url, callback_host)
  select charged.scan_id, charged.account_id, queue, substring($6::bytea from sealed_from for sealed_bytes),
    storage_key, url, test_case, now() + hold_ms * interval '1 millisecond', callback_url, callback_host
  from charged join requested using (i) join recorded on recorded.id = charged.scan_id
  where charged.balance >= 0 and is_job order by i
)
select ${keyFields},
  coalesce(locked_balance.credit_limit, balances.credit_limit) as "creditLimit",
  coalesce(locked_balance.credit_remaining, balances.credit_remaining) as "creditRemaining",
  coalesce(locked_balance.is_period_over, ${isPeriodOver}) as "isPeriodOver",
  (select array_agg(charged.i) from charged where charged.k = counted.k) as charged,
  (select array_agg(charged.balance) from charged where charged.k = counted.k) as balances,
  (select json_agg(repeated) from repeated where repeated.k = counted.k) as repeated,
  -- A credit was reserved for an idempotency key that a concurrent call took, so another scan may have been refused for
  -- it.
  exists (
    select from decided where decided.account_id = counted.account_id and not pays and stored_id is not null
  ) as "isRaced"
from counted
join balances using (account_id)
left join locked_balance using (account_id)
`

/** The statements by the work of a batch. With `inAccounts`, rates of accounts count as well. */
export const admissionStatements = {
  count: {
    byKey: `-- name: count-requests\n${countRequests}${selectCounted}`,
    inAccounts: `-- name: count-requests-in-accounts\n${countInAccounts}${selectCounted}`,
  },
  countAndCharge: {
    byKey: `-- name: count-and-charge\n${countRequests}${charge}`,
    inAccounts: `-- name: count-and-charge-in-accounts\n${countInAccounts}${charge}`,
  },
  charge: `-- name: charge-scans\n${readWindows}${charge}`,
  countAndEnqueue: {
    byKey: `-- name: count-and-enqueue\n${countRequests}${enqueue}`,
    inAccounts: `-- name: count-and-enqueue-in-accounts\n${countInAccounts}${enqueue}`,
  },
  enqueue: `-- name: enqueue-scans\n${readWindows}${enqueue}`,
}
