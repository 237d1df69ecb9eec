import type { ApiKey } from '../accounts/account.ts'
import type { KeyRestrictions } from '../accounts/key-restrictions.ts'

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
