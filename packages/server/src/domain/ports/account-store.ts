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
  verdictPolicy: string | null
  webhookSecret: string
  key: NewApiKey
}

/** Fields that are left out stay as they are; null removes an override or an expiry. */
export type AccountChange = {
  name?: string
  plan?: string
  credits?: number | null
  rate?: Rate | null
  expiresAt?: Date | null
  flagsSexy?: boolean
  downloadHosts?: string[] | null
  /** Receiver of a webhook for each revision of a result; null for none. */
  revisionUrl?: string | null
  verdictPolicy?: string | null
  suspended?: boolean
  /** Why the account is suspended, for its members to read. */
  suspendedReason?: string | null
}

export type AccountStore = {
  createAccount(account: NewAccount): Promise<Account>
  /** Creates the account only if there is none at all, however many nodes try at the same time. */
  createFirstAccount(account: NewAccount): Promise<Account | undefined>
  findAccount(id: string): Promise<Account | undefined>
  listAccounts(): Promise<Account[]>
  /** Hosts that URLs of the account may name; null allows every public host. */
  findDownloadHosts(id: string): Promise<string[] | null>
  /** The verdict policy of the account; null for that of the installation. */
  findVerdictPolicy(id: string): Promise<string | null>
  /** Everything that changes a balance writes the ledger in the same transaction. */
  updateAccount(id: string, change: AccountChange): Promise<Account | undefined>
  grantCredits(id: string, amount: number, note: string | null): Promise<Account | undefined>
  listLedger(id: string, limit: number): Promise<LedgerEntry[]>
  /**
   * The secrets that sign now: the current one, and the previous one until it expires. Empty without such an account.
   */
  listWebhookSecrets(id: string): Promise<string[]>
  /** When the secret was rotated, and until when the previous secret signs; null when it does not. */
  findWebhookRotation(id: string): Promise<{ rotatedAt: Date | null; previousUntil: Date | null }>
  /**
   * The previous secret also signs for `previousMs`, so that receivers have time to switch. Returns until when;
   * undefined without such an account.
   */
  rotateWebhookSecret(id: string, secret: string, previousMs: number): Promise<Date | undefined>
  /** Accounts whose ledger does not sum to their balance: there must be none. */
  listUnbalanced(): Promise<{ id: string; balance: number; ledger: number }[]>
}
