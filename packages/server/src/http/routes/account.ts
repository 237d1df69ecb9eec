import type { Account as WireAccount } from '@assay/contract'
import type { Account } from '../../domain/accounts/account.ts'
import type { AccountStore } from '../../domain/ports/account-store.ts'
import { getCaller } from '../hooks/admit.ts'
import type { Handler } from './handler.ts'

export function makeAccountHandler(deps: { accounts: AccountStore }): Handler {
  return async (request) => {
    const { accountId } = getCaller(request)
    const account = await deps.accounts.findAccount(accountId)
    if (account === undefined) throw new Error(`Account ${accountId} vanished after it was admitted`)
    return toWire(account)
  }
}

const toWire = ({ plan, balance, createdAt }: Account): WireAccount => ({
  plan,
  credit_limit: balance.creditLimit,
  credit_remaining: balance.creditRemaining,
  created_date: createdAt.toISOString(),
  period_start_date: balance.period.start.toISOString(),
  period_end_date: balance.period.end.toISOString(),
})
