import type { ColumnType, Generated } from 'kysely'
import type { LedgerKind } from '../domain/accounts/account.ts'

type Made<T> = ColumnType<T, T | undefined, T>

/** The tables as kysely sees them. `schema.sql` has the whole truth; the tests keep both in step with the migrations. */
export type Tables = {
  plans: {
    name: string
    credits_per_period: number
    rate_requests: number
    rate_period_seconds: number
    created_at: Generated<Date>
  }
  accounts: {
    id: string
    name: string
    plan: string
    credits_per_period: number | null
    rate_requests: number | null
    rate_period_seconds: number | null
    created_at: Made<Date>
    expires_at: Date | null
    suspended_at: Made<Date | null>
    webhook_secret: string
    previous_webhook_secret: Made<string | null>
    previous_webhook_secret_until: Made<Date | null>
    flags_sexy: Generated<boolean>
    download_hosts: Made<string[] | null>
  }
  balances: {
    account_id: string
    allocated: number
    credit_limit: number
    credit_remaining: number
    period_anchor: Date
    period_start: Date
    period_end: Date
  }
  api_keys: {
    id: string
    account_id: string
    name: string
    prefix: string
    digest: Buffer
    created_at: Generated<Date>
    expires_at: Date | null
    revoked_at: Made<Date | null>
    is_test: Generated<boolean>
  }
  installation: {
    is_test: boolean
  }
  rate_windows: {
    key_id: string
    started_at: Generated<Date>
    used: Generated<number>
    last_used_at: Made<Date | null>
  }
  credit_ledger: {
    id: Generated<string>
    account_id: string
    kind: LedgerKind
    amount: number
    balance: number
    scan_id: string | null
    note: string | null
    at: Generated<Date>
  }
}
