import type { Account, LedgerEntry, Rate } from '../accounts/account.ts'
import type { NewApiKey } from './key-store.ts'

export type NewAccount = {
  id: string
  name: string
  plan: string
  credits: number | null
  rate: Rate | null
  expiresAt: Date | null
  flagsSexy: boolean
  downloadHosts: string[] | null
  webhookSecret: string
  key: NewApiKey
}

/** A member left out stays as it is; null takes an override or an expiry away. */
export type AccountChange = {
  name?: string
  plan?: string
  credits?: number | null
  rate?: Rate | null
  expiresAt?: Date | null
  flagsSexy?: boolean
  downloadHosts?: string[] | null
  suspended?: boolean
}

export type AccountStore = {
  createAccount(account: NewAccount): Promise<Account>
  /** Creates it only where there is no account at all, however many nodes try at once. */
  createFirstAccount(account: NewAccount): Promise<Account | undefined>
  findAccount(id: string): Promise<Account | undefined>
  listAccounts(): Promise<Account[]>
  /** Null: all that are public. */
  findDownloadHosts(id: string): Promise<string[] | null>
  /** Everything that changes a balance writes the ledger in the same transaction. */
  updateAccount(id: string, change: AccountChange): Promise<Account | undefined>
  grantCredits(id: string, amount: number, note: string | null): Promise<Account | undefined>
  listLedger(id: string, limit: number): Promise<LedgerEntry[]>
  /** Those that sign now: the account's, and the one before while it still does. None without such an account. */
  listWebhookSecrets(id: string): Promise<string[]>
  /** The secret before signs until then; when the secret was changed is a day earlier. */
  findWebhookRotation(id: string): Promise<{ rotatedAt: Date | null; previousUntil: Date | null }>
  /** The secret before keeps signing until `previousUntil`, so that receivers can change over. */
  rotateWebhookSecret(id: string, secret: string, previousUntil: Date): Promise<boolean>
  /** Accounts whose ledger does not sum to their balance: there must be none. */
  listUnbalanced(): Promise<{ id: string; balance: number; ledger: number }[]>
}
