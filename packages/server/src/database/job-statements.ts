import { toTimeAgo } from './query.ts'
import { scanFields, sourceFields } from './scan-store.ts'

/**
 * Puts jobs back into the queue whose lease has run out or whose pause is over. This is a statement of its own, so that
 * claims look in one place only, account by account.
 */
export const requeueStatement = `
-- name: requeue-jobs
update jobs set held_until = null, lease_token = null
where scan_id = any(array(
  select scan_id from jobs where held_until < now() order by held_until limit 1000 for update skip locked
))
`

/**
 * Tells whether there is anything to put back or to claim, by the first entry of two indexes. Jobs of every queue count
 * as waiting: looking for those of some queues could read all the others.
 */
export const inspectQueueStatement = `
-- name: inspect-job-queue
select coalesce((select held_until from jobs where held_until is not null order by held_until limit 1) < now(), false)
    as "hasOverdue",
  (select account_id from jobs where held_until is null order by account_id limit 1) is not null as "hasWaiting"
`

const claimedFields = `scan_id as "scanId", account_id as "accountId", attempts, lease_token as token, ${sourceFields},
    test_case as "testCase", callback_url as "callbackUrl"`
const joinAccount = `
  left join lateral (
    select flags_sexy as "flagsSexy" from accounts where accounts.id = claimed."accountId" limit 1
  ) as account on true`

/**
 * `array_position` lets the planner expect that most jobs are of these queues. With `= any` it expects so few that it
 * reads and sorts all waiting jobs, instead of the first one in the order of the index.
 */
const nextAccount = (condition: string) => `
    (select next.account_id from jobs as next
     where next.held_until is null and array_position($4::text[], next.queue) is not null and ${condition}
     order by next.account_id limit 1)`

/**
 * Accounts take turns: each gets one job before any gets its second. The turns begin after the account that was served
 * last ($3), so that claims of a single job rotate too. The accounts are found by skipping through the index from one
 * to the next, at most $1 of them, so the cost depends neither on the number of waiting jobs nor on the number of
 * accounts.
 *
 * $1 the most jobs to claim, $2 lease in milliseconds, $4 the queues to claim from. Always returns at least one row,
 * which says whether more jobs may be waiting.
 */
export const claimStatement = `
-- name: claim-jobs
with recursive later_account (account_id, n) as (
  -- Accounts after the one served last.
  select ${nextAccount('next.account_id > $3::uuid')}, 1
  union all
  select ${nextAccount('next.account_id > later_account.account_id')}, n + 1
  from later_account where later_account.account_id is not null and n < $1::integer
),
earlier_account (account_id, n) as (
  -- The others, up to and including the one served last.
  select ${nextAccount('next.account_id <= $3::uuid')}, (select count(account_id) from later_account)::integer + 1
  where (select count(account_id) from later_account) < $1::integer
  union all
  select ${nextAccount('next.account_id > earlier_account.account_id and next.account_id <= $3::uuid')}, n + 1
  from earlier_account where earlier_account.account_id is not null and n < $1::integer
),
account_order as materialized (
  select account_id, n from later_account where account_id is not null
  union all
  select account_id, n from earlier_account where account_id is not null
),
depth as materialized (
  -- How many jobs of each account fill the claim twice, if every account has that many.
  select ceil(2.0 * $1::integer / greatest(count(*), 1))::integer as depth from account_order
),
candidate as materialized (
  select job.scan_id, n, row_number() over (partition by n order by job.position) as turn
  from account_order cross join lateral (
    select scan_id, position from jobs
    where jobs.account_id = account_order.account_id and held_until is null and queue = any($4::text[])
    order by position limit (select depth from depth)
  ) as job
),
ready as materialized (
  select scan_id, n, turn from candidate order by turn, n limit 2 * $1::integer
),
picked as materialized (
  -- Locks one job after the other in that order, until there are enough. \`num_nulls\` keeps the planner from using the
  -- index of waiting jobs to find a single scan.
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
  returning ${claimedFields}
)
select more as "hasMore", claimed.*, "flagsSexy"
from (
  -- As all leases, claims do not wait for the disk.
  select (select count(*) from candidate) > (select count(*) from picked)
    or exists (select from candidate cross join depth where turn >= depth) as more,
    set_config('synchronous_commit', 'off', true)
) as rest
left join (
  picked join claimed on claimed."scanId" = picked.scan_id ${joinAccount}
) on true
order by turn, n
`

/** Claims jobs of any queue that have waited for $1 milliseconds; $2 the most jobs, $3 lease in milliseconds. */
export const claimAbandonedStatement = `
-- name: claim-abandoned-jobs
with claimed as (
  update jobs set attempts = attempts + 1, lease_token = gen_random_uuid(),
    held_until = now() + $3::integer * interval '1 millisecond'
  where scan_id = any(array(
    select scan_id from jobs where held_until is null and created_at < ${toTimeAgo('$1')} limit $2::integer for update skip locked
  ))
  returning ${claimedFields}
)
select false as "hasMore", claimed.*, "flagsSexy" from claimed ${joinAccount}
`

/**
 * The scans of claimed jobs, $1; $2 and $3 are the first and the last id. This is not part of the claim: a claim knows
 * the ids only at its end, so PostgreSQL would have to open every partition at its beginning.
 */
export const findScansStatement = `
-- name: find-claimed-scans
select ${scanFields} from scans where id = any($1::uuid[]) and id between $2::uuid and $3::uuid`

export const extendLeasesStatement = `
-- name: extend-job-leases
with held as materialized (
  select lease.scan_id
  from (select scan_id, token from unnest($1::uuid[], $2::uuid[]) as l (scan_id, token) order by scan_id) as lease
  cross join lateral (
    select from jobs where jobs.scan_id = lease.scan_id and jobs.lease_token = lease.token limit 1 for update
  ) as job
)
update jobs set held_until = now() + $3::integer * interval '1 millisecond'
where scan_id = any(array(select scan_id from held))
returning scan_id as "scanId", lease_token as token
`

export const releaseStatement = `
-- name: release-job
update jobs set lease_token = null, attempts = attempts - $4::integer,
  held_until = case when $3::integer > 0 then now() + $3::integer * interval '1 millisecond' end
where scan_id = $1 and lease_token = $2
`

/**
 * Completes a batch of jobs: writes verdicts, refunds and deliveries, and deletes the jobs. $1 is the JSON of the
 * results; $2 and $3 are the first and the last scan id. Only the current lease of a job can complete it; a stale lease
 * changes nothing. Returns the results that were written. Locks are taken in the order of scans (jobs), then of
 * accounts (balances).
 */
export const completeStatement = `
-- name: complete-jobs
with result as materialized (
  select r.* from json_to_recordset($1::json) as r (
    i integer, id uuid, token uuid, status text, content_length bigint, content_type text,
    content_name text, signals text[], metadata jsonb, completed_at timestamptz, refunds boolean, delivery_id uuid,
    delivery_body text
  )
  order by id
),
held as materialized (
  select result.*, job.account_id, job.callback_url, job.callback_host
  from result cross join lateral (
    select account_id, callback_url, callback_host from jobs
    where jobs.scan_id = result.id and jobs.lease_token = result.token
    limit 1 for update
  ) as job
),
completed as (
  update scans set status = held.status, content_length = held.content_length, content_type = held.content_type,
    content_name = held.content_name, signals = held.signals, metadata = held.metadata,
    completed_at = held.completed_at
  from held
  -- The array makes PostgreSQL use the index. With the join alone it may plan to read all scans while they are few, and
  -- keep that plan.
  where scans.id = held.id and scans.id = any(array(select id from held)) and scans.status = 'pending'
    -- The bounds tell PostgreSQL before the statement runs which partitions it need not open.
    and scans.id between $2::uuid and $3::uuid
  returning held.i, held.id, held.account_id, held.refunds
),
owed_refund as materialized (
  select i, id, account_id from completed where refunds
),
locked_balance as materialized (
  select account_id, credit_limit, credit_remaining from balances
  where account_id = any(array(select account_id from owed_refund))
  order by account_id
  for update
),
refunded as materialized (
  -- If the period ended since the charge, the account has its full limit again: no refund beyond that
  -- limit is due.
  select * from (
    select owed_refund.i, owed_refund.id, account_id, credit_limit,
      (credit_remaining + row_number() over (partition by account_id order by i))::integer as balance
    from owed_refund join locked_balance using (account_id)
  ) as r
  where balance <= credit_limit
),
credited as (
  -- The limit is written for the same reason as with a debit; see admission-statements.ts.
  update balances set credit_remaining = r.balance, credit_limit = r.credit_limit
  from (select account_id, credit_limit, max(balance) as balance from refunded group by account_id, credit_limit) as r
  where balances.account_id = r.account_id and balances.account_id = any(array(select account_id from refunded))
),
ledger as (
  insert into credit_ledger (account_id, kind, amount, balance, scan_id)
  select account_id, 'refund', 1, balance, id from refunded order by i
),
delivery as (
  insert into deliveries (id, scan_id, account_id, url, host, body)
  select delivery_id, held.id, held.account_id, callback_url, callback_host, delivery_body
  from completed join held using (i) where callback_url is not null
),
deleted as (
  delete from jobs where scan_id = any(array(select id from held))
)
select i from completed
`

/**
 * Jobs that are counted exactly; beyond them, a sample of 5 % of the pages gives an estimate. Counting 100,000 takes
 * 0.1 s.
 */
const maxExactCount = 10_000

/** The oldest waiting job is the first one of some account, or one of the held jobs, which are few. */
export const countJobsStatement = `
-- name: count-jobs
with recursive first_job (account_id, created_at) as (
  (select account_id, created_at from jobs where held_until is null order by account_id, position limit 1)
  union all
  select next.account_id, next.created_at
  from first_job cross join lateral (
    select account_id, created_at from jobs
    where held_until is null and jobs.account_id > first_job.account_id order by account_id, position limit 1
  ) as next
),
held as materialized (
  select created_at, lease_token is not null and held_until > now() as is_running from jobs
  -- Jobs of test keys pause on purpose, so they do not count.
  where held_until is not null and test_case is null
)
select case when listed < ${maxExactCount} then listed
    else greatest(listed, (select count(*) * 20 from jobs tablesample system (5) where held_until is null)) end::integer
    + (select count(*) from held where not is_running)::integer as waiting,
  (select count(*) from held where is_running)::integer as running,
  coalesce(greatest(0, extract(epoch from now() -
    least((select min(created_at) from first_job), (select min(created_at) from held)))), 0)::float8 as "oldestSeconds"
from (
  select count(*) as listed from (select from jobs where held_until is null limit ${maxExactCount}) as first
) as count
`

export const listNeededStatement = `
-- name: list-needed-by-jobs
select storage_key as key from jobs where storage_key = any($1::text[])
`
