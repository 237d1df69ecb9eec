import type { Pool } from 'pg'
import { findPeriod } from '../domain/accounts/account.ts'
import { changeRows, findRow, listRows, type Queryable } from './query.ts'

/** Gives an account its first credits, with the ledger row that explains them. Does nothing if it has a balance. */
export async function openBalance(db: Queryable, accountId: string, anchor: Date, now: Date): Promise<void> {
  const { start, end } = findPeriod(anchor, now)
  await changeRows(
    db,
    `with opened as (
       insert into balances
         (account_id, allocated, credit_limit, credit_remaining, period_anchor, period_start, period_end)
       select accounts.id, credits, credits, credits, $2, $3, $4
       from accounts join plans on plans.name = accounts.plan
       cross join lateral (select coalesce(accounts.credits_per_period, plans.credits_per_period) as credits) as c
       where accounts.id = $1
       on conflict do nothing returning account_id, allocated
     ),
     windows as (
       insert into account_windows (account_id) select account_id from opened on conflict do nothing
     )
     insert into credit_ledger (account_id, kind, amount, balance)
     select account_id, 'opening', allocated, allocated from opened`,
    [accountId, anchor, start, end],
  )
}

/**
 * Opens the balances and rate windows that are missing. Accounts and keys may be replicated from another region, while
 * credits and rate windows belong to this one. Returns whether any were missing.
 */
export async function openMissingBalances(pool: Pool): Promise<boolean> {
  const windows = await changeRows(
    pool,
    `insert into rate_windows (key_id)
     select id from api_keys where not exists (select from rate_windows where key_id = api_keys.id)
     on conflict do nothing`,
  )
  const missing = await listRows<{ id: string; createdAt: Date; now: Date }>(
    pool,
    `select id, created_at as "createdAt", now() as now from accounts
     where not exists (select from balances where account_id = accounts.id)`,
  )
  for (const { id, createdAt, now } of missing) await openBalance(pool, id, createdAt, now)
  return windows > 0 || missing.length > 0
}

const openingPauseMs = 1000

/** Opens missing balances at most once a second, however many requests come with unknown keys. */
export function makeBalanceOpener(pool: Pool): () => Promise<boolean> {
  let opening: Promise<boolean> | undefined
  return () => {
    if (opening === undefined) {
      opening = openMissingBalances(pool)
      setTimeout(() => {
        opening = undefined
      }, openingPauseMs).unref()
    }
    return opening
  }
}

/**
 * SQL that tells whether the period of a balance is over: it has ended, or it has not begun, because the clock of the
 * database was set back. No transaction begins a period later than the time at which another one sees it, and that is
 * what `clock_timestamp()` returns; `now()` is the time at which the transaction of the reader began.
 */
export const isPeriodOver = '(balances.period_end <= now() or balances.period_start > clock_timestamp())'

/** Rolls the periods that are over, of one account or of all: a reader sees the same balance as a request would. */
export async function rollEndedPeriods(pool: Pool, accountId?: string): Promise<void> {
  const ended = await listRows<{ id: string }>(
    pool,
    `select account_id as id from balances where ${isPeriodOver} and ($1::uuid is null or account_id = $1)`,
    [accountId ?? null],
  )
  for (const { id } of ended) await rollPeriod(pool, id)
}

/**
 * Moves an account into the current period. The period_end that was read fences the change: of several callers one
 * rolls, and the others change nothing. Unused credits lapse, and grants end with their period.
 */
export async function rollPeriod(pool: Pool, accountId: string): Promise<void> {
  const period = await findRow<{ anchor: Date; end: Date; now: Date }>(
    pool,
    `select period_anchor as anchor, period_end as "end", now() as now from balances
     where account_id = $1 and ${isPeriodOver}`,
    [accountId],
  )
  if (period === undefined) return
  const { start, end } = findPeriod(period.anchor, period.now)
  await changeRows(
    pool,
    `with rolled as (
       update balances set allocated = allowance.credits, credit_limit = allowance.credits, credit_remaining = allowance.credits,
         period_start = $3, period_end = $4
       from (
         select before.account_id, before.credit_remaining,
           coalesce(accounts.credits_per_period, plans.credits_per_period) as credits
         from balances before
         join accounts on accounts.id = before.account_id
         join plans on plans.name = accounts.plan
         where before.account_id = $1
         for update of before
       ) as allowance
       where balances.account_id = allowance.account_id and balances.period_end = $2 and ${isPeriodOver}
       returning balances.account_id, allowance.credits, allowance.credits - allowance.credit_remaining as amount
     )
     insert into credit_ledger (account_id, kind, amount, balance)
     select account_id, 'roll', amount, credits from rolled`,
    [accountId, period.end, start, end],
  )
}

/**
 * Applies a new plan or allowance at once: the difference is added to, or taken from, the credits that are left in this
 * period, but never below zero. Grants of the period stay.
 */
export async function reallocate(db: Queryable, accountId: string): Promise<void> {
  await changeRows(
    db,
    `with allowance as (
       select balances.account_id, balances.credit_remaining as before,
         coalesce(accounts.credits_per_period, plans.credits_per_period) as allocated,
         coalesce(accounts.credits_per_period, plans.credits_per_period) - balances.allocated as difference
       from balances
       join accounts on accounts.id = balances.account_id
       join plans on plans.name = accounts.plan
       where balances.account_id = $1
       for update of balances
     ),
     changed as (
       update balances set allocated = allowance.allocated, credit_limit = credit_limit + allowance.difference,
         credit_remaining = greatest(0, credit_remaining + allowance.difference)
       from allowance
       where balances.account_id = allowance.account_id and allowance.difference <> 0
       returning balances.account_id, credit_remaining, credit_remaining - allowance.before as amount
     )
     insert into credit_ledger (account_id, kind, amount, balance, note)
     select account_id, 'adjust', amount, credit_remaining, 'plan or allowance changed' from changed`,
    [accountId],
  )
}

/** Returns false when the account has no balance. */
export async function grantCredits(db: Queryable, accountId: string, amount: number, note: string | null) {
  const granted = await changeRows(
    db,
    `with granted as (
       update balances set credit_limit = credit_limit + $2, credit_remaining = credit_remaining + $2
       where account_id = $1 returning account_id, credit_remaining
     )
     insert into credit_ledger (account_id, kind, amount, balance, note)
     select account_id, 'grant', $2, credit_remaining, $3 from granted`,
    [accountId, amount, note],
  )
  return granted > 0
}

/** Accounts whose ledger and charged scans do not sum to their balance, at most 100. */
export const listUnbalanced = `
select id, balance, ledger from (
  select balances.account_id as id, credit_remaining as balance,
    (coalesce(changed.amount, 0) - coalesce(charged.scans, 0))::float8 as ledger
  from balances
  left join (
    select account_id, sum(amount) as amount from credit_ledger group by account_id
  ) as changed on changed.account_id = balances.account_id
  left join (
    select account_id, count(*) as scans from scans where ledger_id is not null group by account_id
  ) as charged on charged.account_id = balances.account_id
) as sums
where ledger <> balance order by id limit 100
`

/**
 * The newest entries of an account's ledger. Scans are looked for by the time at which they began, because they have an
 * index for it; their order in the ledger is that of the charges.
 */
export const listLedger = `
select id, kind, amount, balance, "scanId", note, at from (
  (select id, kind, amount, balance, scan_id as "scanId", note, at from credit_ledger
   where account_id = $1 order by id desc limit $2)
  union all
  (select ledger_id, 'debit', -1, balance, id, null, created_at from scans
   where account_id = $1 and ledger_id is not null order by created_at desc limit $2)
) as entry
order by id desc limit $2
`

/**
 * Adds the debits of deleted scans to the ledger, one row for each account and day. The row of a day has the number of
 * its last debit, and so its place in the order, and the balance after that debit. `deleted` names a table or query
 * with the columns of `scans`.
 */
export const foldDebits = (deleted: string) => `
insert into credit_ledger as kept (id, account_id, kind, amount, balance, note, at)
select max(ledger_id), account_id, 'debit', -count(*), (array_agg(balance order by ledger_id desc))[1],
  count(*) || ' scans', date_trunc('day', created_at, 'utc') as day
from ${deleted} where ledger_id is not null group by account_id, day order by account_id, day
${addToDay}
`

/**
 * Adds the totals of a day to its row in the ledger, if there is one. A day may be added in several pieces, in any
 * order: its row keeps the greatest number and the balance that belongs to it.
 */
export const addToDay = `
on conflict (account_id, kind, at) where scan_id is null and kind in ('debit', 'refund')
do update set amount = kept.amount + excluded.amount, id = greatest(kept.id, excluded.id),
  balance = case when excluded.id > kept.id then excluded.balance else kept.balance end,
  note = (split_part(kept.note, ' ', 1)::bigint + split_part(excluded.note, ' ', 1)::bigint) || ' scans'
`
