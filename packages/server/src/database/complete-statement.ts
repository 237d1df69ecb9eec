import { scanRecord } from './scan-columns.ts'

/**
 * The end of a batch of jobs: verdicts, refunds, deliveries, and the jobs are gone. $1 is their JSON, $2 and $3 the first and
 * the last of their ids. Only the lease that a job has now can end it; the others find nothing, and change nothing.
 * Returns those that were ended.
 *
 * Locks are taken in the order of scans (the jobs), then of accounts (the balances).
 */
export const completeStatement = `
with asked as materialized (
  select a.* from json_to_recordset($1::json) as a (
    i integer, token uuid, refunds boolean, delivery_id uuid, delivery_body text, ${scanRecord}
  )
  order by id
),
ours as materialized (
  select asked.*, job.account_id, job.callback_url, job.callback_host
  from asked cross join lateral (
    select account_id, callback_url, callback_host from jobs
    where jobs.scan_id = asked.id and jobs.lease_token = asked.token
    limit 1 for update
  ) as job
),
changed as (
  update scans set status = ours.status, content_length = ours.content_length, content_type = ours.content_type,
    content_name = ours.content_name, signals = ours.signals, metadata = ours.metadata,
    completed_at = ours.completed_at
  from ours
  -- The list is what the index is asked for. With the join alone the planner may read all scans while they are few, and
  -- hold on to that.
  where scans.id = ours.id and scans.id = any(array(select id from ours)) and scans.status = 'pending'
    -- From these it is known before the statement begins which partitions need not be opened.
    and scans.id between $2::uuid and $3::uuid
  returning ours.i, ours.id, ours.account_id, ours.refunds
),
owed as materialized (
  select i, id, account_id from changed where refunds
),
purse as materialized (
  select account_id, credit_limit, credit_remaining from balances
  where account_id = any(array(select account_id from owed))
  order by account_id
  for update
),
returned as materialized (
  -- A period that ended in between gave the account its full limit: what does not fit is not owed any more.
  select * from (
    select owed.i, owed.id, account_id, credit_limit,
      (credit_remaining + row_number() over (partition by account_id order by i))::integer as balance
    from owed join purse using (account_id)
  ) as r
  where balance <= credit_limit
),
credited as (
  -- The limit is written for the same reason as with a debit.
  update balances set credit_remaining = r.balance, credit_limit = r.credit_limit
  from (select account_id, credit_limit, max(balance) as balance from returned group by account_id, credit_limit) as r
  where balances.account_id = r.account_id and balances.account_id = any(array(select account_id from returned))
),
written as (
  insert into credit_ledger (account_id, kind, amount, balance, scan_id)
  select account_id, 'refund', 1, balance, id from returned order by i
),
posted as (
  insert into deliveries (id, scan_id, account_id, url, host, body)
  select delivery_id, ours.id, ours.account_id, callback_url, callback_host, delivery_body
  from changed join ours using (i) where callback_url is not null
),
ended as (
  delete from jobs where scan_id = any(array(select id from ours))
)
select i from changed
`
