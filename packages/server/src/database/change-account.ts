import { sql, type Transaction } from 'kysely'
import type { AccountChange } from '../domain/ports/account-store.ts'
import type { Tables } from './tables.ts'

/** False when there is no such account. */
export async function changeAccount(trx: Transaction<Tables>, id: string, change: AccountChange): Promise<boolean> {
  const { suspended, expiresAt, credits, rate, name, plan, flagsSexy, downloadHosts } = change
  const updated = await trx
    .updateTable('accounts')
    .set((eb) => ({
      ...(name === undefined ? {} : { name }),
      ...(plan === undefined ? {} : { plan }),
      ...(credits === undefined ? {} : { credits_per_period: credits }),
      ...(rate === undefined
        ? {}
        : { rate_requests: rate?.requests ?? null, rate_period_seconds: rate?.periodSeconds ?? null }),
      ...(expiresAt === undefined ? {} : { expires_at: expiresAt }),
      ...(flagsSexy === undefined ? {} : { flags_sexy: flagsSexy }),
      ...(downloadHosts === undefined ? {} : { download_hosts: downloadHosts }),
      // A second suspension keeps the time of the first.
      ...(suspended === undefined ? {} : { suspended_at: suspended ? sql<Date>`coalesce(suspended_at, now())` : null }),
      id: eb.ref('id'),
    }))
    .where('id', '=', id)
    .returning('id')
    .executeTakeFirst()
  if (updated === undefined) return false
  if (plan !== undefined || credits !== undefined) await reallocate(trx, id)
  return true
}

/**
 * A new plan or allowance counts at once: the difference is added to, or taken from, what is left of this period, but
 * never below zero. Grants of the period stay.
 */
async function reallocate(trx: Transaction<Tables>, accountId: string) {
  await sql`
    with fresh as (
      select balances.account_id, balances.credit_remaining as before,
        coalesce(accounts.credits_per_period, plans.credits_per_period) as allocated,
        coalesce(accounts.credits_per_period, plans.credits_per_period) - balances.allocated as difference
      from balances
      join accounts on accounts.id = balances.account_id
      join plans on plans.name = accounts.plan
      where balances.account_id = ${accountId}
      for update of balances
    ),
    changed as (
      update balances set allocated = fresh.allocated, credit_limit = credit_limit + fresh.difference,
        credit_remaining = greatest(0, credit_remaining + fresh.difference)
      from fresh
      where balances.account_id = fresh.account_id and fresh.difference <> 0
      returning balances.account_id, credit_remaining, credit_remaining - fresh.before as amount
    )
    insert into credit_ledger (account_id, kind, amount, balance, note)
    select account_id, 'adjust', amount, credit_remaining, 'plan or allowance changed' from changed`.execute(trx)
}
