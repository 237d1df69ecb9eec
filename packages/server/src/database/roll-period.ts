import type { Pool } from 'pg'
import type { Period } from '../domain/accounts/account.ts'

/**
 * Moves an account into the period that is current now. The end it read fences the change: of any number of callers
 * one rolls, the others find it done. Unused credits lapse and grants end with their period.
 */
export async function rollPeriod(pool: Pool, accountId: string, currentPeriod: (anchor: Date) => Period) {
  const { rows } = await pool.query<{ period_anchor: Date; period_end: Date }>(
    'select period_anchor, period_end from balances where account_id = $1',
    [accountId],
  )
  const [found] = rows
  if (found === undefined) return
  const { start, end } = currentPeriod(found.period_anchor)
  await pool.query(
    `with rolled as (
       update balances set allocated = fresh.credits, credit_limit = fresh.credits, credit_remaining = fresh.credits,
         period_start = $3, period_end = $4
       from (
         select before.account_id, before.credit_remaining, 
           coalesce(accounts.credits_per_period, plans.credits_per_period) as credits
         from balances before
         join accounts on accounts.id = before.account_id
         join plans on plans.name = accounts.plan
         where before.account_id = $1
         for update of before
       ) as fresh
       where balances.account_id = fresh.account_id and balances.period_end = $2 and $4 > $2
       returning balances.account_id, fresh.credits, fresh.credits - fresh.credit_remaining as amount
     )
     insert into credit_ledger (account_id, kind, amount, balance)
     select account_id, 'roll', amount, credits from rolled`,
    [accountId, found.period_end, start, end],
  )
}
