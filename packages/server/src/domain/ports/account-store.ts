import type { Account, ApiKey, LedgerEntry, Plan, Rate } from '../accounts/account.ts'
import type { KeyRestrictions } from '../accounts/keys.ts'

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

export type NewApiKey = {
  id: string
  name: string
  prefix: string
  digest: string
  expiresAt: Date | null
  isTest: boolean
  restrictions: KeyRestrictions
  createdBy: string | null
}

/** The keys with which the console scans for an account. */
export type ConsoleKeyStore = {
  /** Creates the console's own key, which the plan does not count. */
  createConsoleKey(accountId: string, key: NewApiKey): Promise<void>
  /** Digest of the console's own key of this account, in hex. */
  findConsoleDigest(accountId: string): Promise<string | undefined>
}

export type KeyStore = {
  /**
   * Returns `too-many` with the limit if the account has as many active keys as its plan allows. The key that is being
   * replaced does not count.
   */
  createKey(
    accountId: string,
    key: NewApiKey,
    options?: { replacesId?: string | undefined },
  ): Promise<ApiKey | { outcome: 'too-many'; maxKeys: number }>
  listKeys(accountId: string | null): Promise<ApiKey[]>
  /**
   * Lets the key expire after that time unless it expires earlier. Returns false without such a key, or if it is
   * revoked.
   */
  expireKey(accountId: string, id: string, afterMs: number): Promise<boolean>
  /**
   * Changes what a key may be used for, from its next request on. Returns the restrictions in the order in which they are
   * stored, or undefined when there is no such key.
   */
  restrictKey(id: string, restrictions: KeyRestrictions): Promise<KeyRestrictions | undefined>
  /** Returns false when there is no such key. Revoking twice keeps the first time. */
  revokeKey(id: string): Promise<boolean>
}

export type PlanStore = {
  savePlan(plan: Plan): Promise<void>
  findPlan(name: string): Promise<Plan | undefined>
  listPlans(): Promise<Plan[]>
  /** Returns false when there is no such plan; throws an OperatorMistake while accounts use it. */
  deletePlan(name: string): Promise<boolean>
}
