import { scanColumns } from './scan-columns.ts'

/**
 * The scans of jobs that were claimed, $1, between the first and the last of them. Apart from the claims, which know
 * only at their end which these are, and would have to open every partition to begin with.
 */
export const findScansStatement = `
select ${scanColumns} from scans where id = any($1::uuid[]) and id between $2::uuid and $3::uuid
`

/**
 * Jobs whose worker let its lease run out, and those that have rested, wait again. In a statement of its own, so that
 * claims look in one place only, and account by account.
 */
export const requeueStatement = `
update jobs set held_until = null, lease_token = null
where scan_id = any(array(
  select scan_id from jobs where held_until < now() order by held_until limit 1000 for update skip locked
))
`

const claimedColumns = 'scan_id, account_id, attempts, lease_token, sealed, storage_key, url, test_case, callback_url'
const withAccount = `
  left join lateral (select flags_sexy from accounts where accounts.id = claimed.account_id limit 1) as account on true`

/** Those that nobody took since before $1, of any queue; $2 how many, $3 lease in milliseconds. */
export const claimAbandonedStatement = `
with claimed as (
  update jobs set attempts = attempts + 1, lease_token = gen_random_uuid(),
    held_until = now() + $3::integer * interval '1 millisecond'
  where scan_id = any(array(
    select scan_id from jobs where held_until is null and created_at < $1 limit $2::integer for update skip locked
  ))
  returning ${claimedColumns}
)
select false as more, claimed.*, flags_sexy from claimed ${withAccount}
`

const nextAccount = (condition: string) => `
    (select next.account_id from jobs as next where next.held_until is null and next.queue = any($4::text[]) and ${condition}
     order by next.account_id limit 1)`

/**
 * Accounts sit in a circle, and each gets one job before any gets its second. The circle begins behind the account that
 * was served last ($3), so that also claims of one job at a time go around. It is found by jumping through the index from
 * account to account, no further than $1 of them: it matters neither how many jobs wait nor how many accounts.
 *
 * $1 how many, $2 lease in milliseconds, $4 the queues that may be taken from. Always tells whether there may be more, also when it took none.
 */
export const claimStatement = `
with recursive ahead (account_id, n) as (
  select ${nextAccount('next.account_id > $3::uuid')}, 1
  union all
  select ${nextAccount('next.account_id > ahead.account_id')}, n + 1
  from ahead where ahead.account_id is not null and n < $1::integer
),
behind (account_id, n) as (
  select ${nextAccount('next.account_id <= $3::uuid')}, (select count(account_id) from ahead)::integer + 1
  where (select count(account_id) from ahead) < $1::integer
  union all
  select ${nextAccount('next.account_id > behind.account_id and next.account_id <= $3::uuid')}, n + 1
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
    where jobs.account_id = seat.account_id and held_until is null and queue = any($4::text[])
    order by position limit (select depth from depth)
  ) as job
),
ready as materialized (
  select scan_id, n, turn from seen order by turn, n limit 2 * $1::integer
),
picked as materialized (
  -- One by one in that order, as far as they are needed. \`num_nulls\` is there so that the index of those that wait is not
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
  returning ${claimedColumns}
)
select more, claimed.*, flags_sexy
from (
  select (select count(*) from seen) > (select count(*) from picked)
    or exists (select from seen cross join depth where turn >= depth) as more
) as rest
left join (
  picked join claimed using (scan_id) ${withAccount}
) on true
order by turn, n
`
