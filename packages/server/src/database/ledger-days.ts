import type { Pool } from 'pg'
import { runTransaction } from './run-transaction.ts'

const ledgerLock = 52_115_008
const foldAtOnce = 5000

/**
 * The ledger has a row for each debit. Those of scans that are forgotten become one row for the account and the day, so
 * that it does not grow for ever and still sums to the balance. A scan with a job can yet be refunded: its rows stay,
 * because they are what keeps a second refund out.
 */
export async function foldLedger(pool: Pool, resultDays: number): Promise<number> {
  let folded = 0
  for (;;) {
    const statement = { text: fold, values: [resultDays] }
    const { rows } = await runTransaction<{ folded: number }>(pool, [statement], { lock: ledgerLock })
    folded += rows[0]?.folded ?? 0
    if ((rows[0]?.folded ?? 0) < foldAtOnce) return folded
  }
}

/**
 * Old rows are found by the time that ids of scans begin with, in the index that keeps debits and refunds unique. A row of
 * a day keeps the number of the last row in it, and so its place among the others.
 */
const fold = `
with old as materialized (
  select id from credit_ledger
  where scan_id < (lpad(to_hex((extract(epoch from now() - make_interval(days => $1)) * 1000)::bigint), 12, '0')
      || repeat('0', 20))::uuid
    and at < now() - make_interval(days => $1)
    and not exists (select from jobs where jobs.scan_id = credit_ledger.scan_id)
  order by scan_id limit ${foldAtOnce}
),
gone as (
  delete from credit_ledger where id = any(array(select id from old))
  returning id, account_id, kind, amount, balance, date_trunc('day', at, 'utc') as day
),
folded as (
  insert into credit_ledger as kept (id, account_id, kind, amount, balance, note, at) overriding system value
  select max(id), account_id, kind, sum(amount), (array_agg(balance order by id desc))[1], count(*) || ' scans', day
  from gone group by account_id, kind, day
  on conflict (account_id, kind, at) where scan_id is null and kind in ('debit', 'refund')
  do update set amount = kept.amount + excluded.amount, balance = excluded.balance,
    note = (split_part(kept.note, ' ', 1)::bigint + split_part(excluded.note, ' ', 1)::bigint) || ' scans'
)
select count(*)::integer as folded from gone
`
