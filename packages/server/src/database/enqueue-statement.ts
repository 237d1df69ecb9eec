import {
  fromLockedBalances,
  lockBalances,
  readWindows,
  record,
  takeRequests,
  tellOfCharges,
  tellOfKeys,
  toBalance,
} from './admission-statement.ts'
import { jobRecord } from './job-columns.ts'
import { scanRecord } from './scan-columns.ts'

/**
 * The forms of the admission statement for scans that a worker will do, or that carry an idempotency key. Here $3 has
 * these as well, and $4 the sealed contents of the jobs, one behind the other.
 *
 * Idempotency keys are taken after the balances are locked. Balances are an account's and so are its keys: whoever asks
 * with the same key at the same time waits there, and then finds the key taken, though not in what this statement saw
 * when it began. So it is the insert that decides, and it tells whose the key is.
 */
const findSpenders = `
asked_scan as materialized (
  select s.*
  from json_to_recordset($3::json) as s (
    i integer, k integer, nth integer, flags_sexy boolean, operation text, key text, fingerprint text, ${jobRecord}, ${scanRecord}
  )
),
asking as materialized (
  select asked_scan.i, asked_scan.k, asked_scan.id as scan_id, counted.account_id, counted.is_test, operation, key,
    asked_scan.fingerprint,
    earlier.scan_id as earlier_id, earlier.fingerprint as earlier_fingerprint
  from asked_scan
  join counted using (k)
  left join lateral (
    select true as yes from credit_ledger as c where c.scan_id = asked_scan.id and c.kind = 'debit' limit 1
  ) as recorded on true
  left join lateral (
    select scan_id, fingerprint from idempotency_keys as known
    where known.account_id = counted.account_id and known.operation = asked_scan.operation and known.key = asked_scan.key
    limit 1
  ) as earlier on true
  where coalesce(nth <= granted, true) and recorded.yes is null
    and coalesce(asked_scan.flags_sexy = counted.flags_sexy, true)
),
spender as materialized (
  select i, k, scan_id, account_id, is_test, operation, key, fingerprint,
    key is null or row_number() over (partition by account_id, operation, key order by i) = 1 as is_first
  from asking where earlier_id is null
),`

const spend = `
wish as materialized (
  select spender.*, credit_limit, credit_remaining,
    is_test or credit_remaining - count(*) filter (where is_first and not is_test) over (partition by account_id order by i) >= 0
      as affordable
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
  select wish.i, wish.k, wish.account_id, wish.is_test, wish.scan_id, credit_limit, credit_remaining,
    kept.scan_id as kept_id, kept.fingerprint as kept_fingerprint,
    coalesce(case when wish.key is null then affordable else kept.scan_id = wish.scan_id end, false) as pays
  from wish left join kept using (account_id, operation, key)
),
spent as materialized (
  select i, k, account_id, is_test, scan_id, credit_limit,
    case when pays then ${toBalance('account_id, pays')} else -1 end as balance
  from judged where pays or kept_id is null
),
repeated as materialized (
  select i, k, earlier_id as scan_id, encode(earlier_fingerprint, 'hex') as fingerprint
  from asking where earlier_id is not null
  union all
  select i, k, kept_id, encode(kept_fingerprint, 'hex') from judged where not pays and kept_id is not null
),`

const queue = `,
queued as (
  insert into jobs (scan_id, account_id, queue, sealed, storage_key, url, test_case, held_until, callback_url, callback_host)
  select spent.scan_id, spent.account_id, queue, substring($4::bytea from sealed_from for sealed_bytes), storage_key, url,
    test_case, now() + hold_ms * interval '1 millisecond', callback_url, callback_host
  from spent join asked_scan using (i) join recorded on recorded.id = spent.scan_id
  where spent.balance >= 0 and is_job order by i
)`

const enqueue = `${findSpenders}${lockBalances}${spend}${record}${queue}
select ${tellOfKeys},${tellOfCharges},
  (select json_agg(repeated) from repeated where repeated.k = counted.k) as repeated,
  exists (select from judged where judged.account_id = counted.account_id and not pays and kept_id is not null) as raced
${fromLockedBalances}`

/** Requests and scans together. */
export const enqueueStatement = `${takeRequests}, ${enqueue}`
/** Scans alone. */
export const laterEnqueueStatement = `${readWindows}, ${enqueue}`
