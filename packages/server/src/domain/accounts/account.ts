import type { Period } from './period.ts'
import type { Rate } from './rate.ts'

export type Plan = { name: string; creditsPerPeriod: number; rate: Rate }

type Balance = { creditLimit: number; creditRemaining: number; period: Period }

export type Account = {
  id: string
  name: string
  plan: string
  /** What the account has instead of its plan's own, where it differs. */
  creditsPerPeriod: number
  rate: Rate
  /** A picture that is sexy, and no more than that, is a threat to this account. */
  flagsSexy: boolean
  /** That its URLs may name; null: all that are public. */
  downloadHosts: string[] | null
  balance: Balance
  createdAt: Date
  expiresAt: Date | null
  suspendedAt: Date | null
}

export type ApiKey = {
  id: string
  accountId: string
  name: string
  prefix: string
  /** Its scans are answered by name, not by engines, and cost nothing. */
  isTest: boolean
  createdAt: Date
  lastUsedAt: Date | null
  expiresAt: Date | null
  revokedAt: Date | null
}

/** `opening` and `adjust` complete the four of everyday life, so that an account's rows always sum to its balance. */
export type LedgerKind = 'opening' | 'debit' | 'refund' | 'grant' | 'roll' | 'adjust'

export type LedgerEntry = {
  id: string
  kind: LedgerKind
  amount: number
  balance: number
  scanId: string | null
  note: string | null
  at: Date
}
