import type { Pool } from 'pg'
import { periodAt } from '../../domain/accounts/account.ts'

/**
 * Credits and rate windows belong to a region; accounts and keys may come from another one. Opens what is missing for
 * those that have come, and says whether there was anything.
 */
export async function openBalances(pool: Pool): Promise<boolean> {
  const { rowCount: windows } = await pool.query(
    `insert into rate_windows (key_id)
     select id from api_keys where not exists (select from rate_windows where key_id = api_keys.id)
     on conflict do nothing`,
  )
  const { rows: missing } = await pool.query<{ id: string; created_at: Date; credits: number; at: Date }>(
    `select accounts.id, accounts.created_at, now() as at,
       coalesce(accounts.credits_per_period, plans.credits_per_period) as credits
     from accounts join plans on plans.name = accounts.plan
     where not exists (select from balances where account_id = accounts.id)`,
  )
  for (const { id, created_at: anchor, credits, at } of missing) {
    const { start, end } = periodAt(anchor, at)
    await pool.query(
      `with opened as (
         insert into balances (account_id, allocated, credit_limit, credit_remaining, period_anchor, period_start, period_end)
         values ($1, $2, $2, $2, $3, $4, $5) on conflict do nothing returning account_id, allocated
       )
       insert into credit_ledger (account_id, kind, amount, balance) select account_id, 'opening', allocated, allocated from opened`,
      [id, credits, anchor, start, end],
    )
  }
  return Number(windows) > 0 || missing.length > 0
}

const pauseMs = 1000

/** The same at most once a second, however many ask with keys that nobody knows. */
export function makeBalanceOpener(pool: Pool): () => Promise<boolean> {
  let opening: Promise<boolean> | undefined
  return () => {
    if (opening === undefined) {
      opening = openBalances(pool)
      setTimeout(() => {
        opening = undefined
      }, pauseMs).unref()
    }
    return opening
  }
}
